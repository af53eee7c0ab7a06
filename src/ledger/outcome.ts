import { decodeValue, encodeValue } from './core/codec.ts'
import { OnceError } from './core/errors.ts'
import type { Identity } from './core/identity.ts'
import { exceedsBytes } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { LedgerRecord, Outcome, Pointer } from './core/record.ts'
import type { Failure, Verdict } from './core/verdict.ts'
import { failureOf } from './core/verdict.ts'
import type { Command, Declared } from './declared.ts'

/** What an effect returned. */
export interface Result {
  readonly value: unknown
  /** The value as the text of an outcome, where its maker has written it already. @default made of the value */
  readonly encoded?: string | undefined
}

/** What a settle writes for a result, and what went wrong when the result could not be kept. */
export interface Packed {
  readonly outcome: Outcome
  readonly pointer: Pointer | null
  readonly problem: string | null
}

/** A result that cannot be stored still settles the record: the effect happened, and must never run again. */
export function packValue(op: Declared, { value, encoded: text }: Result): Packed {
  const { definition } = op
  if (definition.keep === 'outcome') return { outcome: { kept: 'outcome', data: null }, pointer: null, problem: null }
  if (definition.keep === 'pointer') return packPointer(definition.pointer, value)
  const encoded = text === undefined ? encodeValue(value) : { text }
  if ('problem' in encoded) return notStored(`the result cannot be serialised: ${encoded.problem}`)
  // A character takes at most three bytes: almost every outcome is decided by its length.
  if (encoded.text.length * 3 > op.maxOutcomeBytes && exceedsBytes(encoded.text, op.maxOutcomeBytes))
    return notStored(`the result is larger than ${op.maxOutcomeBytes} bytes`)
  return { outcome: { kept: 'response', data: encoded.text }, pointer: null, problem: null }
}

function notStored(problem: string): Packed {
  return { outcome: { kept: 'not_stored', data: null }, pointer: null, problem }
}

function packPointer(pointerOf: ((value: unknown) => Pointer) | undefined, value: unknown): Packed {
  try {
    const pointer = pointerOf === undefined ? null : checkPointer(pointerOf(value))
    return { outcome: { kept: 'pointer', data: null }, pointer, problem: null }
  } catch (error) {
    return notStored(error instanceof Error ? error.message : String(error))
  }
}

export function checkPointer(pointer: Pointer): Pointer {
  const { type, id } = pointer
  if (typeof type !== 'string' || typeof id !== 'string' || type === '' || id === '') {
    throw new OnceError('bad_input', 'A pointer needs a non-empty string `type` and `id`.')
  }
  if (exceedsBytes(type + id, limits.pointerBytes)) {
    throw new OnceError('bad_input', `A pointer is at most ${limits.pointerBytes} bytes long.`)
  }
  return { type, id }
}

export function packFailure(error: unknown): Outcome {
  const failure = failureOf(error)
  const encoded = encodeValue(failure)
  if (!('problem' in encoded) && !exceedsBytes(encoded.text, limits.failureDataBytes)) {
    return { kept: 'response', data: encoded.text }
  }
  // The data cannot be kept; what the failure is called and says still is.
  const { name, message, code } = failure
  const bare = encodeValue({ name, message, ...(code === undefined ? {} : { code }) })
  return { kept: 'response', data: 'text' in bare ? bare.text : null }
}

/** A final failure that carries its answer: kept like a result, within the operation's own bound. */
export function packFinal(op: Declared, { error, answer }: Pick<Verdict, 'error' | 'answer'>): Outcome {
  if (answer === undefined) return packFailure(error)
  const bare = packFailure(error)
  if (op.keep !== 'response') return bare
  const encoded = encodeValue({ ...failureOf(error), answer })
  const fits = 'text' in encoded && !exceedsBytes(encoded.text, op.maxOutcomeBytes)
  return fits ? { kept: 'response', data: encoded.text } : { kept: 'not_stored', data: bare.data }
}

/** A recorded failure, and the answer that its retries get, if one was kept. */
export interface RecordedFailure {
  readonly failure: Failure
  readonly answer: unknown
}

export function unpackFailure(data: string | null): RecordedFailure {
  if (data === null) return { failure: { name: 'Error', message: 'The command failed.' }, answer: undefined }
  const { answer, ...failure } = decodeValue(data) as Failure & { readonly answer?: unknown }
  return { failure, answer }
}

export function effectFailed(identity: Identity, data: string | null, cause?: unknown): OnceError<'effect_failed'> {
  const { failure } = unpackFailure(data)
  return new OnceError('effect_failed', `${identity.operation} failed: ${failure.message}`, {
    details: { failure },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Gives back what the first attempt answered, as far as the operation keeps it. A promise where it is rebuilt. */
export function unpackValue(op: Declared, command: Command, record: LedgerRecord, outcome: Outcome): unknown {
  switch (outcome.kept) {
    case 'outcome':
      return undefined
    case 'response':
      return outcome.data === null ? undefined : decodeValue(outcome.data)
    case 'pointer': {
      const { definition } = op
      if (record.pointer === null || definition.keep !== 'pointer') throw notKept(command.identity, record.pointer)
      const { identity, input, as } = command
      return Promise.resolve(definition.rebuild(record.pointer, { identity, input, as, pointer: record.pointer }))
    }
    case 'not_stored':
      throw notKept(command.identity, record.pointer)
  }
}

function notKept(identity: Identity, pointer: Pointer | null): OnceError {
  return new OnceError(
    'outcome_not_stored',
    `${identity.operation} succeeded, and its result is not in the record: it was no plain data, was too large, or cannot be decrypted.`,
    {
      details: { pointer },
    },
  )
}
