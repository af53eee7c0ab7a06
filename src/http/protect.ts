import { isOnceError } from '../core/errors.ts'
import type { IdentityParts } from '../core/identity.ts'
import type { Pointer } from '../core/record.ts'
import { final, notDone, released } from '../core/verdict.ts'
import type { Attempt } from '../ledger/attempt.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Execution } from '../ledger/present.ts'
import type { TransactionWork } from '../ledger/transact.ts'
import { declareRoute } from './declare.ts'
import type { Answer, Captured, Incoming } from './exchange.ts'
import { meaningOf } from './finality.ts'
import { readRequest } from './read.ts'
import type { StoredAnswer } from './record.ts'
import { markedReplayed, replayedAnswer, storedAnswer } from './record.ts'
import type { RouteDefinition, Who } from './route.ts'
import { checkRoute } from './route.ts'
import type { VoiceOptions } from './voice.ts'
import { createVoice } from './voice.ts'

export interface HttpOptions<N, Tx> extends VoiceOptions {
  readonly ledger: Ledger<Tx>
  /** From the authenticated request; stable across token refresh. Write `caller: 'shared'` out if it is meant. */
  readonly who: (request: N) => Who | Promise<Who>
}

/** What a handler may use while its request is protected. */
export interface Protection<Tx> {
  readonly attempt: Attempt
  /** On a `transaction` route: what is written here commits with the answer's record, or not at all. */
  readonly work: TransactionWork<Tx> | null
  /** The answer says that nothing was done: the claim is given back, whatever its status is. */
  notDone(): void
}

export type Begun<Tx> =
  /** No key, and none needed: the handler runs as if we were not here. */
  | { readonly kind: 'unprotected' }
  /** The protocol answers: a replay, or a problem document. */
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** The handler runs. Its answer is handed to `finish` before its last byte is sent, a thrown error to `fail`. */
  | Running<Tx>

export interface Running<Tx> {
  readonly kind: 'run'
  readonly protection: Protection<Tx>
  finish(captured: Captured): Promise<void>
  fail(error: unknown): Promise<void>
}

/** One protected route: the one algorithm, whatever the framework. */
export interface Route<N, Tx> {
  readonly definition: RouteDefinition<N>
  /** Larger answers are passed on, but not kept. */
  readonly maxAnswerBytes: number
  /** A transaction's answer must not leave before its commit, so it is not streamed. */
  readonly buffered: boolean
  begin(incoming: Incoming, request: N, signal?: AbortSignal): Promise<Begun<Tx>>
}

/** The largest answer that is kept: in the record, base64-encoded, it still fits into the store's bound. */
const MAX_ANSWER_BYTES = 1_024 * 1_024

export function createRoute<N, Tx>(options: HttpOptions<N, Tx>, definition: RouteDefinition<N>): Route<N, Tx> {
  checkRoute(definition)
  const profile = definition.profile ?? options.profile
  const voice = createVoice({ ...options, ...(profile === undefined ? {} : { profile }) })
  const finality = definition.finality ?? voice.profile.finality
  const keep = definition.keep ?? 'response'
  const operation = declareRoute(options.ledger, definition)

  async function begin(incoming: Incoming, request: N, signal?: AbortSignal): Promise<Begun<Tx>> {
    // 1. The request itself: what is wrong with it is found before anything is claimed.
    const read = readRequest(definition, incoming)
    if (read.kind === 'problem') return { kind: 'answer', answer: voice.say(read.situation, read.detail) }
    if (read.kind === 'keyless')
      return read.allowed ? { kind: 'unprotected' } : { kind: 'answer', answer: voice.say(read.situation, read.detail) }
    // 2. Who asks, by the authentication of this request.
    const { tenant, caller } = await options.who(request)
    return claimed({ tenant, caller, operation: read.operation, key: read.key }, read.input, request, signal)
  }

  async function claimed(
    parts: IdentityParts,
    input: unknown,
    request: N,
    signal: AbortSignal | undefined,
  ): Promise<Begun<Tx>> {
    const started = Promise.withResolvers<TransactionWork<Tx> | Attempt>()
    const ended = Promise.withResolvers<StoredAnswer>()
    // 3. The claim. Its effect is "the handler has answered", so the handler runs when the effect begins.
    const effect = (work: TransactionWork<Tx> | Attempt) => {
      started.resolve(work)
      return ended.promise
    }
    const call = { as: request, ...(signal === undefined ? {} : { signal }) }
    const execution = operation.execute(parts, input, effect, call).catch((error: unknown): Execution<StoredAnswer> => {
      if (isOnceError(error)) return { kind: 'refused', error }
      throw error
    })
    const first = await Promise.race([started.promise.then((work) => ({ work })), execution.then((over) => ({ over }))])
    if ('over' in first) return { kind: 'answer', answer: await recorded(first.over, request, parts) }
    return running(first.work, ended, execution)
  }

  function running(
    work: TransactionWork<Tx> | Attempt,
    ended: PromiseWithResolvers<StoredAnswer>,
    execution: Promise<unknown>,
  ): Running<Tx> {
    const inside = 'tx' in work ? work : null
    const attempt = 'tx' in work ? work.attempt : work
    let undone = false
    // A rolled-back transaction rejects with what we threw into it; the handler's answer says all there is to say.
    const settled = execution.then(
      () => undefined,
      () => undefined,
    )
    return {
      kind: 'run',
      protection: { attempt, work: inside, notDone: () => void (undone = true) },
      // 4. The outcome is recorded before the last byte of the answer leaves.
      finish(captured) {
        end(captured, undone, attempt.pointer, ended)
        return settled
      },
      fail(error) {
        ended.reject(error)
        return settled
      },
    }
  }

  function end(
    captured: Captured,
    undone: boolean,
    pointer: Pointer | null,
    ended: PromiseWithResolvers<StoredAnswer>,
  ): void {
    const answered = new Error(`answered ${captured.status}`)
    switch (undone ? 'released' : meaningOf(captured, finality)) {
      case 'succeeded':
        return ended.resolve(storedAnswer(captured, keep, pointer))
      case 'refused':
        return ended.reject(final(answered, { answer: storedAnswer(captured, keep, pointer) }))
      case 'released':
        return ended.reject(released(answered))
      case 'fault':
        return ended.reject(definition.effect === 'repeatable' ? notDone(answered) : answered)
    }
  }

  /** What a twin is answered: the record, with the rights of the current request; or the reason why there is none. */
  async function recorded(execution: Execution<StoredAnswer>, request: N, parts: IdentityParts): Promise<Answer> {
    const name = parts.operation ?? ''
    if (execution.kind === 'refused')
      return voice.refuse(execution.error, { name, whileRunning: definition.whileRunning })
    const stored = execution.kind === 'failed' ? (execution.answer as StoredAnswer | undefined) : execution.value
    if (stored === undefined)
      return voice.say('response-not-stored', { operation: name, detail: 'The response was not kept.' })
    if (stored.pointer !== undefined && definition.rebuild !== undefined) {
      return markedReplayed(await definition.rebuild(stored.pointer, request))
    }
    if (stored.missing === undefined) return replayedAnswer(stored)
    const original = { status: stored.status, headers: Object.fromEntries(stored.headers), ...stored.missing }
    return voice.say('response-not-stored', {
      operation: name,
      detail: 'The response was too large to keep.',
      extra: { original },
    })
  }

  return {
    definition,
    maxAnswerBytes: definition.maxAnswerBytes ?? MAX_ANSWER_BYTES,
    buffered: definition.effect === 'transaction',
    begin,
  }
}
