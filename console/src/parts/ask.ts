import { useCallback, useEffect, useState } from 'preact/hooks'

/** What the server refused, in its own words. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'Refused'
    this.status = status
  }
}

/** The session has ended: the whole page must know. */
export const signedOut = 'onceonly-signed-out'

interface Asking {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly body?: unknown
  readonly signal?: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
}

/** Asks the server for JSON. The shape of an answer is the server's promise, and its tests hold it to that. */
export async function ask<T>(path: string, { method = 'GET', body, signal, headers = {} }: Asking = {}): Promise<T> {
  const response = await fetch(path, {
    method,
    credentials: 'same-origin',
    // No page of another host can send this header, so that no other page can act for the one who is signed in.
    headers: { accept: 'application/json', 'x-onceonly-console': '1', ...contentType(body), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error
    throw new Refused(0, 'The server does not answer.')
  })
  if (!response.ok) {
    if (response.status === 401) window.dispatchEvent(new Event(signedOut))
    throw new Refused(response.status, await reasonOf(response))
  }
  return (response.status === 204 ? undefined : await response.json()) as T
}

function contentType(body: unknown): Readonly<Record<string, string>> {
  return body === undefined ? {} : { 'content-type': 'application/json' }
}

async function reasonOf(response: Response): Promise<string> {
  try {
    const problem = (await response.json()) as { readonly detail?: unknown; readonly title?: unknown }
    return String(problem.detail ?? problem.title ?? response.statusText)
  } catch {
    return `The server answered ${response.status}.`
  }
}

export type Asked<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'loaded'; readonly value: T }
  | { readonly kind: 'failed'; readonly message: string; readonly status: number }

/** Loads when the path changes and on request; the old data stays in sight until the new answer is there. */
export function useAsk<T>(path: string): readonly [Asked<T>, () => void] {
  const [asked, setAsked] = useState<Asked<T>>({ kind: 'loading' })
  const [turn, setTurn] = useState(0)
  useEffect(() => setAsked({ kind: 'loading' }), [path])
  useEffect(() => {
    const leaving = new AbortController()
    ask<T>(path, { signal: leaving.signal }).then(
      (value) => setAsked({ kind: 'loaded', value }),
      (error: unknown) => {
        if (leaving.signal.aborted) return
        const { message, status } = error instanceof Refused ? error : { message: String(error), status: 0 }
        setAsked({ kind: 'failed', message, status })
      },
    )
    return () => leaving.abort()
  }, [path, turn])
  const again = useCallback(() => setTurn((before) => before + 1), [])
  return [asked, again]
}
