import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { OnceError } from '../../ledger/core/errors.ts'
import type { BodyAnswer, BodyQuestion } from '../protocol/large-body.ts'
import { answerBody } from '../protocol/large-body.ts'
import { gatewayLimits } from './limits.ts'

/** The fingerprints of large bodies, in a thread of their own: a hostile one takes seconds, and no other request waits for it. */
export interface Fingerprints {
  /** Null for a body that is not worth the way. */
  ask(question: BodyQuestion): Promise<BodyAnswer> | null
  /** When nothing is asked any more. */
  settled(): Promise<void>
  stop(): void
}

export interface Told {
  readonly id: number
  readonly answer?: BodyAnswer
  /** The body cannot be read as what it says it is. */
  readonly refused?: { readonly message: string; readonly details: Readonly<Record<string, unknown>> }
  readonly failed?: string
}

interface Asked extends PromiseWithResolvers<BodyAnswer> {
  readonly question: BodyQuestion
}

/** With the extension of this file: in the sources it is another one than in what is published. */
const PROGRAM = join(import.meta.dirname, `fingerprint-thread${extname(import.meta.filename)}`)

export function createFingerprints(program = PROGRAM): Fingerprints {
  const asked = new Map<number, Asked>()
  const waiting: (() => void)[] = []
  let thread: Worker | null = null
  let lastId = 0

  function open(): Worker {
    const opened = new Worker(program)
    opened.unref()
    opened.on('message', take)
    // Whatever ends it, such as a bundler that left it behind, is no fault of the requests: they are answered here.
    opened.once('error', () => {})
    opened.once('exit', () => answerHere(opened))
    return opened
  }

  function take({ id, answer, refused, failed }: Told): void {
    const found = asked.get(id)
    if (found === undefined) return
    asked.delete(id)
    if (answer !== undefined) found.resolve(answer)
    else if (refused !== undefined)
      found.reject(new OnceError('bad_input', refused.message, { details: refused.details }))
    else found.reject(new Error(failed ?? 'The fingerprint of a body could not be computed.'))
    if (asked.size === 0) for (const settle of waiting.splice(0)) settle()
  }

  function answerHere(ended: Worker): void {
    if (thread !== ended) return
    thread = null
    for (const [id, { question }] of asked) take(toldOf(id, question))
  }

  return {
    ask(question) {
      if (question.body.length < gatewayLimits.threadBytes) return null
      const id = ++lastId
      const one = { question, ...Promise.withResolvers<BodyAnswer>() }
      asked.set(id, one)
      thread ??= open()
      thread.postMessage({ id, question })
      return one.promise
    },
    settled() {
      return asked.size === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve))
    },
    stop() {
      const ended = thread
      thread = null
      void ended?.terminate()
      for (const id of asked.keys()) take({ id, failed: 'The gateway is ending.' })
    },
  }
}

/** Also what the thread tells: an error with its code does not survive the way. */
export function toldOf(id: number, question: BodyQuestion): Told {
  try {
    return { id, answer: answerBody(question) }
  } catch (error) {
    if (!(error instanceof OnceError)) return { id, failed: String(error) }
    const { message, next, details } = error
    return { id, refused: { message: message.replace(next, '').trim(), details } }
  }
}
