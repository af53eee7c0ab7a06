import pRetry from 'p-retry'

/** One thing that a client is to have done, once. */
export interface Command {
  /** Its name. It is in the head of every request, in the key or in the path, so that every part can see it. */
  readonly cell: string
  readonly key: string
  readonly port: number
  /** `http://127.0.0.1:…` */
  readonly url: string
  /** How long one try may take. */
  readonly timeoutMs: number
  /** How often it is tried at the most. */
  readonly tries: number
}

/** A client as it is installed, with nothing but its own options set. */
export interface Client {
  readonly name: string
  /** Gives the id of what was made, as the client understood its answer; rejects when it understood that there is none. */
  send(command: Command): Promise<string>
  /** It signs every try anew, so that two tries have two credentials. */
  readonly resigns?: boolean
  /** A program that may be missing on this machine. */
  readonly program?: string
  /** It has no limit for the time of one try. */
  readonly waits?: boolean
  /** Statuses that it does not retry and cannot be configured to retry. */
  readonly leaves?: readonly number[]
}

export const CELL = /cell\d{4}/

/** The body of every command. */
export const BODY = { email: 'ann@example.com', amount: 5 }

/** Statuses that every client is configured to retry, where it can be. */
export const RETRIED = [429, 500, 502, 503, 504]

/** Between two attempts, where a client can be configured. */
export const PAUSE_MS = 50

/** An answer that is no success, as libraries without an error for it meet one. */
export class BadStatus extends Error {
  readonly status: number

  constructor(status: number, text: string) {
    super(`${status} ${text}`)
    this.name = 'BadStatus'
    this.status = status
  }
}

/** What a success says, by a library that hands over status and text. */
export function idIn(status: number, text: string): string {
  if (status < 200 || status > 299) throw new BadStatus(status, text)
  const { id } = JSON.parse(text) as { readonly id?: unknown }
  if (typeof id !== 'string') throw new TypeError(`There is no id in ${text}.`)
  return id
}

/**
 * What callers write around a client that leaves some retries, or all of them, to them: under the same key, and not for an
 * answer that a repetition cannot change.
 */
export function again<T>({ tries }: Command, send: () => Promise<T>): Promise<T> {
  const pause = { minTimeout: PAUSE_MS, maxTimeout: PAUSE_MS }
  return pRetry(send, { retries: tries, ...pause, shouldRetry: ({ error }) => !isInVain(error) })
}

const LEAST_STATUS = 100

/** Every client has errors of its own, all of them with a number where there was an answer. */
function isInVain(error: unknown): boolean {
  const { status, statusCode, code } = error as { status?: unknown; statusCode?: unknown; code?: unknown }
  return [status, statusCode, code].some(
    (each) => typeof each === 'number' && each >= LEAST_STATUS && !RETRIED.includes(each),
  )
}
