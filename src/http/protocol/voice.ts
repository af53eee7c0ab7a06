import type { OnceError } from '../../ledger/core/errors.ts'
import type { WhileRunning } from '../../ledger/definition.ts'
import type { Answer } from './exchange.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import type { Profile, ProfileName } from './profiles.ts'
import { profiles } from './profiles.ts'

/** How one route speaks when the protocol answers: its profile, its problem types, its links. */
export interface Voice {
  readonly profile: Profile
  say(situation: Situation, detail: ProblemDetail): Answer
  /** The URL of an operation's status. */
  link(id: string): string
  /** The words of the error table, as HTTP. Rethrows what is not ours to answer. */
  refuse(error: OnceError, refused: Refused): Answer
}

/** The request that the ledger refused. */
export interface Refused {
  /** Of its operation. */
  readonly name: string
  readonly whileRunning: WhileRunning | undefined
  /** The address that was asked: the instance of the problem, where there is no operation to look at. */
  readonly target?: string
}

export interface VoiceOptions {
  /** Selects the error format: our own problem documents, those of the IETF draft, or Stripe's. @default 'standard' */
  readonly profile?: ProfileName
  /** Problem types are URIs below this; absolute, or a path of this server. @default '/problems' */
  readonly problemBase?: string
  /** Where `GET /operations/{id}` is served. @default '/operations' */
  readonly operationsPath?: string
}

const DEFAULT_PROBLEM_BASE = '/problems'
const DEFAULT_OPERATIONS_PATH = '/operations'

export function createVoice(options: VoiceOptions): Voice {
  const profile = profiles[options.profile ?? 'standard']
  const base = options.problemBase ?? DEFAULT_PROBLEM_BASE
  const operations = options.operationsPath ?? DEFAULT_OPERATIONS_PATH
  const say = (situation: Situation, detail: ProblemDetail) => profile.answer(base, situation, detail)

  const linkTo = (id: string) => `${operations}/${id}`

  return {
    profile,
    say,
    link: linkTo,
    refuse(error, { name, whileRunning, target }) {
      const { retryAfterMs, details } = error
      const id = typeof details['id'] === 'string' ? details['id'] : null
      const link = id === null ? {} : { instance: linkTo(id) }
      const asked = target === undefined ? {} : { instance: target }
      const common = { operation: name, detail: sentence(error), ...asked }
      switch (error.code) {
        case 'key_reused':
          return say('idempotency-key-reused', common)
        case 'in_progress': {
          const accept = whileRunning === 'accept' && id !== null
          const location = accept ? { location: linkTo(id) } : {}
          return say(accept ? 'request-accepted' : 'request-in-progress', {
            ...common,
            ...link,
            ...location,
            retryAfterMs,
          })
        }
        case 'retry_later':
        case 'not_done':
          return say('retry-later', { ...common, retryAfterMs })
        case 'outcome_unknown':
        case 'lease_lost':
        case 'lease_over':
          return say('outcome-unknown', { ...common, ...link })
        case 'key_expired':
          return say('key-expired', common)
        case 'outcome_not_stored':
          return say('response-not-stored', { ...common, extra: { original: { pointer: details['pointer'] ?? null } } })
        case 'not_authorized':
          return say('not-authorized', { detail: 'You are not allowed to see this outcome.', ...asked })
        case 'too_many_attempts':
          return say('too-many-attempts', { ...common, retryAfterMs })
        case 'too_many_waiters':
        case 'store_busy':
        case 'store_unavailable':
        case 'store_replaced':
        case 'transaction_too_long':
        case 'stopped':
          return say('store-unavailable', {
            ...common,
            detail: 'The record of requests cannot be reached right now.',
            retryAfterMs,
          })
        case 'bad_input':
          return say('invalid-request', common)
        case 'bad_identity':
          // The key was checked before; a blank tenant or caller is a fault of `who`, not of the client.
          if (details['part'] === 'tenant' || details['part'] === 'caller') throw error
          return say('invalid-request', common)
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
