import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { OnceError } from '../../ledger/core/errors.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { createShares } from '../front/shares.ts'
import type { BodyAnswer, BodyQuestion } from '../protocol/large-body.ts'
import { answerBody } from '../protocol/large-body.ts'
import { Crowded } from './crowded.ts'
import { gatewayLimits } from './limits.ts'

/**
 * The fingerprints of large bodies, in a thread of their own: a hostile one takes seconds, and no other request waits
 * for it.
 */
export interface Fingerprints {
  /**
   * Null for a body that is not worth the way. One after the other, and key by key: a flood of one does not delay
   * another.
   */
  ask(question: BodyQuestion, key: string): Promise<BodyAnswer> | null
  stop(): void
}

export interface ThreadAnswer {
  readonly id: number
  readonly answer?: BodyAnswer
  /** The body cannot be read as what it says it is. */
  readonly refused?: { readonly message: string; readonly details: Readonly<Record<string, unknown>> }
  readonly failed?: string
}

interface Asked extends PromiseWithResolvers<BodyAnswer> {
  readonly id: number
  readonly question: BodyQuestion
  readonly key: string
}

/** With the extension of this file: in the sources it is another one than in what is published. */
const PROGRAM = join(import.meta.dirname, `fingerprint-thread${extname(import.meta.filename)}`)

export function createFingerprints(program = PROGRAM): Fingerprints {
  const { largeQueue, largeQueueMs, threadBytes } = gatewayLimits
  const turns = createShares({
    most: () => 1,
    share: 1,
    queue: { most: largeQueue, waitMs: largeQueueMs, runtime: createRuntime() },
  })
  /** The one that has its turn. */
  let current: Asked | null = null
  let thread: Worker | null = null
  let lastId = 0
  let isOver = false

  function open(): Worker {
    const opened = new Worker(program)
    opened.unref()
    opened.on('message', take)
    // Whatever ends it, such as a bundler that left it behind, is no fault of the request: it is answered here.
    opened.once('error', () => {})
    opened.once('exit', () => {
      if (thread !== opened) return
      thread = null
      if (current !== null) take(answerTo(current.id, current.question))
    })
    return opened
  }

  function begin(asked: Asked): void {
    current = asked
    if (isOver) return queueMicrotask(giveUp)
    thread ??= open()
    thread.postMessage({ id: asked.id, question: asked.question })
  }

  function giveUp(): void {
    if (current !== null) take({ id: current.id, failed: 'The gateway is ending.' })
  }

  function take({ id, answer, refused, failed }: ThreadAnswer): void {
    if (current?.id !== id) return
    const { key, resolve, reject } = current
    current = null
    if (answer !== undefined) resolve(answer)
    else if (refused !== undefined) reject(new OnceError('bad_input', refused.message, { details: refused.details }))
    else reject(new Error(failed ?? 'The fingerprint of a body could not be computed.'))
    turns.leave(key)
  }

  return {
    ask(question, key) {
      if (question.body.length < threadBytes) return null
      const asked: Asked = { id: ++lastId, question, key, ...Promise.withResolvers<BodyAnswer>() }
      turns.whenFree(
        key,
        () => begin(asked),
        () => asked.reject(new Crowded()),
      )
      return asked.promise
    },
    stop() {
      isOver = true
      const ended = thread
      thread = null
      void ended?.terminate()
      giveUp()
    },
  }
}

/** Also used by the thread: an error with its code does not survive structured cloning. */
export function answerTo(id: number, question: BodyQuestion): ThreadAnswer {
  try {
    return { id, answer: answerBody(question) }
  } catch (error) {
    if (!(error instanceof OnceError)) return { id, failed: String(error) }
    const { message, next, details } = error
    return { id, refused: { message: message.replace(next, '').trim(), details } }
  }
}
