import type { OnceError } from '../../ledger/core/errors.ts'
import type { WhileRunning } from '../../ledger/definition.ts'
import type { Answer } from './exchange.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import type { Profile, ProfileName } from './profiles.ts'
import { profiles } from './profiles.ts'

/** Writes the responses of the protocol itself, in the error format of a route. */
export interface ProblemWriter {
  readonly profile: Profile
  write(situation: Situation, detail: ProblemDetail): Answer
  /** The URL of an operation's status. */
  link(id: string): string
  /** An error of the ledger as a response. Rethrows errors that are the application's. */
  refuse(error: OnceError, refused: Refused): Answer
}

/** The request that the ledger refused. */
export interface Refused {
  /** Of its operation. */
  readonly name: string
  readonly whileRunning: WhileRunning | undefined
  /** The path of the request: the instance of the problem, where there is no operation to link to. */
  readonly target?: string
}

export interface ProblemOptions {
  /** Selects the error format: our own problem documents, those of the IETF draft, or Stripe's. @default 'standard' */
  readonly profile?: ProfileName
  /** Problem types are URIs below this; absolute, or a path of this server. @default '/problems' */
  readonly problemBase?: string
  /** Where `GET /operations/{id}` is served. @default '/operations' */
  readonly operationsPath?: string
}

const DEFAULT_PROBLEM_BASE = '/problems'
const DEFAULT_OPERATIONS_PATH = '/operations'

export function createProblemWriter(options: ProblemOptions): ProblemWriter {
  const profile = profiles[options.profile ?? 'standard']
  const base = options.problemBase ?? DEFAULT_PROBLEM_BASE
  const operations = options.operationsPath ?? DEFAULT_OPERATIONS_PATH
  const write = (situation: Situation, detail: ProblemDetail) => profile.answer(base, situation, detail)

  const linkTo = (id: string) => `${operations}/${id}`

  return {
    profile,
    write,
    link: linkTo,
    refuse(error, { name, whileRunning, target }) {
      const { retryAfterMs, details } = error
      const id = typeof details['id'] === 'string' ? details['id'] : null
      const link = id === null ? {} : { instance: linkTo(id) }
      const asked = target === undefined ? {} : { instance: target }
      const common = { operation: name, detail: sentence(error), ...asked }
      switch (error.code) {
        case 'key_reused':
          return write('idempotency-key-reused', common)
        case 'in_progress': {
          const accept = whileRunning === 'accept' && id !== null
          const location = accept ? { location: linkTo(id) } : {}
          return write(accept ? 'request-accepted' : 'request-in-progress', {
            ...common,
            ...link,
            ...location,
            retryAfterMs,
          })
        }
        case 'retry_later':
        case 'not_done':
          return write('retry-later', { ...common, retryAfterMs })
        case 'outcome_unknown':
        case 'lease_lost':
        case 'lease_over':
        case 'transaction_lost':
          return write('outcome-unknown', { ...common, ...link })
        case 'key_expired':
          return write('key-expired', common)
        case 'outcome_not_stored':
          return write('response-not-stored', {
            ...common,
            extra: { original: { pointer: details['pointer'] ?? null } },
          })
        case 'not_authorized':
          return write('not-authorized', { detail: 'You are not allowed to see this outcome.', ...asked })
        case 'too_many_attempts':
          return write('too-many-attempts', { ...common, retryAfterMs })
        case 'too_many_waiters':
        case 'store_busy':
        case 'store_unavailable':
        case 'store_replaced':
        case 'transaction_too_long':
        case 'stopped':
          return write('store-unavailable', {
            ...common,
            detail: 'The record of requests cannot be reached right now.',
            retryAfterMs,
          })
        case 'bad_input':
          return write('invalid-request', common)
        case 'bad_identity':
          // The key was checked before; a blank tenant or caller is a fault of `who`, not of the client.
          if (details['part'] === 'tenant' || details['part'] === 'caller') throw error
          return write('invalid-request', common)
        default:
          throw error
      }
    },
  }
}

/** The message without the advice to the developer: clients have advice of their own. */
function sentence({ message, next }: OnceError): string {
  return message.endsWith(next) ? message.slice(0, -next.length).trim() : message
}
