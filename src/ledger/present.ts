import { decodeValue } from '../core/codec.ts'
import { isOnceError, OnceError } from '../core/errors.ts'
import type { Pointer } from '../core/record.ts'
import type { Failure } from '../core/verdict.ts'
import type { Context } from './context.ts'
import type { Command, Declared } from './declared.ts'
import type { Landing } from './flight.ts'
import type { Packed } from './outcome.ts'
import { effectFailed, unpackFailure, unpackValue } from './outcome.ts'

/** What a caller learns: whether the effect ran now, ran before, or ran for somebody else; or why there is no answer. */
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

/** Turns a landing into one caller's answer. Everybody but the one whose effect ran is authorised first. */
export async function present(
  context: Context,
  op: Declared,
  command: Command,
  landing: Landing,
  leader: boolean,
): Promise<Execution<unknown>> {
  const { identity } = command
  switch (landing.kind) {
    case 'refused':
    case 'released':
      return { kind: 'refused', error: landing.error }
    case 'failed': {
      if (!leader && isGuarded(op) && !(await admitted(context, op, command, null))) return forbidden(context, command)
      return failedWith(command, landing.data, !leader, landing.cause)
    }
    case 'executed': {
      if (leader) return { kind: 'executed', value: landing.value }
      if (isGuarded(op) && !(await admitted(context, op, command, landing.packed.pointer)))
        return forbidden(context, command)
      context.tally.count(command.id, identity, 'replays')
      return { kind: 'joined', value: await sharedValue(op, command, landing) }
    }
    case 'settled': {
      const { record, waited, cached } = landing
      if (isGuarded(op) && !(await admitted(context, op, command, record.pointer))) return forbidden(context, command)
      context.tally.count(command.id, identity, 'replays')
      if (waited) context.events.emit({ kind: 'joined', identity, waitedMs: null })
      else context.events.emit({ kind: 'replayed', identity, state: record.state, cached })
      if (record.state === 'failed_terminal') return failedWith(command, record.outcome.data, true, undefined)
      return replayed(op, command, landing)
    }
  }
}

async function replayed(
  op: Declared,
  command: Command,
  landing: Landing & { kind: 'settled' },
): Promise<Execution<unknown>> {
  const { record, waited } = landing
  try {
    const value = unpackValue(op, command, record, record.outcome)
    return { kind: waited ? 'joined' : 'replayed', value: value instanceof Promise ? await value : value }
  } catch (error) {
    if (isOnceError(error, 'outcome_not_stored')) return { kind: 'refused', error }
    throw error
  }
}

/** Asked first, because waiting for an answer that is always yes would cost every replay. */
const isGuarded = (op: Declared): boolean => op.definition.authorize !== undefined

async function admitted(context: Context, op: Declared, command: Command, pointer: Pointer | null): Promise<boolean> {
  const { authorize } = op.definition
  if (authorize === undefined) return true
  const { identity, input, as } = command
  const allowed = await authorize({ identity, input, as, pointer })
  if (!allowed) context.events.emit({ kind: 'not_authorized', identity })
  return allowed
}

function forbidden(_context: Context, command: Command): Execution<never> {
  const text = `The outcome of ${command.identity.operation} is not for this caller.`
  return { kind: 'refused', error: new OnceError('not_authorized', text) }
}

function failedWith(command: Command, data: string | null, replay: boolean, cause: unknown): Execution<never> {
  const error = effectFailed(command.identity, data, cause)
  return { kind: 'failed', replayed: replay, ...unpackFailure(data), error }
}

/** A joiner gets its own copy: two callers must not change one object under each other's hands. */
async function sharedValue(
  op: Declared,
  command: Command,
  { value, packed }: { value: unknown; packed: Packed },
): Promise<unknown> {
  const { definition } = op
  if (definition.keep === 'outcome') return undefined
  if (definition.keep === 'pointer' && packed.pointer !== null) {
    const { identity, input, as } = command
    return await definition.rebuild(packed.pointer, { identity, input, as, pointer: packed.pointer })
  }
  return packed.outcome.kept === 'response' && packed.outcome.data !== null ? decodeValue(packed.outcome.data) : value
}
