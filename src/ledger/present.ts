import type { Context } from './context.ts'
import { decodeValue } from './core/codec.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import type { Pointer } from './core/record.ts'
import type { Failure } from './core/verdict.ts'
import type { Command, Declared } from './declared.ts'
import { shareReplays } from './definition.ts'
import type { Landing } from './flight.ts'
import { effectFailed, unpackFailure, unpackValue } from './outcome.ts'

/**
 * What a caller learns: whether the effect ran now, ran before, or ran for another caller; or why there is no answer.
 */
export type Execution<T> =
  | { readonly kind: 'executed' | 'replayed' | 'joined'; readonly value: T }
  | {
      readonly kind: 'failed'
      readonly replayed: boolean
      readonly failure: Failure
      /** What `final(error, { answer })` gave; undefined where none was given or it could not be kept. */
      readonly answer: unknown
      readonly error: OnceError<'effect_failed'>
    }
  | { readonly kind: 'refused'; readonly error: OnceError }

type Answer = Execution<unknown> | Promise<Execution<unknown>>

/**
 * Turns a landing into one caller's answer. Every caller but the one whose effect ran is authorised first. Returns a promise
 * only when something has to be awaited: most answers are at hand.
 */
export function present(context: Context, op: Declared, command: Command, landing: Landing, leader: boolean): Answer {
  const mine = leader && landing.kind !== 'settled'
  // Asked first, because waiting for an answer that is always yes would cost every replay.
  if (mine || op.definition.authorize === undefined) return answerOf(context, op, command, landing, leader)
  return presentGuarded(context, op, command, landing, leader)
}

async function presentGuarded(
  context: Context,
  op: Declared,
  command: Command,
  landing: Landing,
  leader: boolean,
): Promise<Execution<unknown>> {
  const refused = landing.kind === 'refused' || landing.kind === 'released' || landing.kind === 'thrown'
  const { identity, input, as } = command
  const request = { identity, input, as, pointer: pointerOf(landing) }
  const allowed = refused || (await op.definition.authorize?.(request))
  if (allowed) return answerOf(context, op, command, landing, leader)
  context.events.emit({ kind: 'not_authorized', identity })
  const text = `The outcome of ${identity.operation} is not for this caller.`
  return { kind: 'refused', error: new OnceError('not_authorized', text) }
}

function pointerOf(landing: Landing): Pointer | null {
  if (landing.kind === 'executed') return landing.packed.pointer
  return landing.kind === 'settled' ? landing.record.pointer : null
}

function answerOf(context: Context, op: Declared, command: Command, landing: Landing, leader: boolean): Answer {
  const { identity } = command
  switch (landing.kind) {
    case 'thrown':
      throw landing.error
    case 'refused':
    case 'released':
      return { kind: 'refused', error: landing.error }
    case 'failed':
      return failedWith(command, landing.data, !leader, landing.cause)
    case 'executed': {
      if (leader) return { kind: 'executed', value: landing.value }
      context.tally.count(command.id, identity, 'replays')
      return sharedValue(op, command, landing).then((value) => ({ kind: 'joined', value }))
    }
    case 'settled': {
      const { record, waited, cached } = landing
      context.tally.count(command.id, identity, 'replays')
      if (waited) context.events.emit({ kind: 'joined', identity, waitedMs: null })
      else if (context.events.isHeard)
        context.events.emit({ kind: 'replayed', identity, state: record.state, cached: cached !== null })
      if (record.state === 'failed_terminal') return failedWith(command, record.outcome.data, true, undefined)
      if (cached === null || cached.shared === undefined || op.definition[shareReplays] === undefined)
        return replayed(context, op, command, landing)
      return { kind: waited ? 'joined' : 'replayed', value: cached.shared }
    }
  }
}

function replayed(context: Context, op: Declared, command: Command, landing: Landing & { kind: 'settled' }): Answer {
  const { record, waited, cached } = landing
  const kind = waited ? 'joined' : 'replayed'
  const shares = op.definition[shareReplays]
  try {
    const unpacked = unpackValue(op, command, record, record.outcome)
    const value = shares === undefined || unpacked instanceof Promise ? unpacked : shares(unpacked)
    if (shares !== undefined && cached !== null && !(value instanceof Promise)) context.cache.share(cached, value)
    return value instanceof Promise ? value.then((rebuilt) => ({ kind, value: rebuilt }), notKept) : { kind, value }
  } catch (error) {
    return notKept(error)
  }
}

function notKept(error: unknown): Execution<never> {
  if (isOnceError(error, 'outcome_not_stored')) return { kind: 'refused', error }
  throw error
}

function failedWith(command: Command, data: string | null, replay: boolean, cause: unknown): Execution<never> {
  const error = effectFailed(command.identity, data, cause)
  return { kind: 'failed', replayed: replay, ...unpackFailure(data), error }
}

/** A joiner gets its own copy: two callers must not change one object under each other's hands. */
async function sharedValue(
  op: Declared,
  command: Command,
  { value, packed }: Extract<Landing, { kind: 'executed' }>,
): Promise<unknown> {
  const { definition } = op
  if (definition.keep === 'outcome') return undefined
  if (definition.keep === 'pointer' && packed.pointer !== null) {
    const { identity, input, as } = command
    return await definition.rebuild(packed.pointer, { identity, input, as, pointer: packed.pointer })
  }
  return packed.outcome.kept === 'response' && packed.outcome.data !== null ? decodeValue(packed.outcome.data) : value
}
