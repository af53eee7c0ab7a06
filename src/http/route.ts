import { OnceError } from '../core/errors.ts'
import type { Identity } from '../core/identity.ts'
import type { OnAbandoned, Pointer } from '../core/record.ts'
import type { EffectKind, ProbeAnswer, ProbedAttempt, WhileRunning } from '../ledger/definition.ts'
import type { Answer } from './exchange.ts'
import type { Finality } from './finality.ts'
import type { ProfileName } from './profiles.ts'
import type { KeepAnswer } from './record.ts'

/** Where a caller's key is found. */
export type KeySource =
  | { readonly header: string }
  /** A field of a JSON body, with dots for nesting. */
  | { readonly field: string }

/** What a route says about itself. `N` is the framework's own request. */
export interface RouteDefinition<N> {
  /** Part of every identity. Left out, the method and the concrete path stand for it. */
  readonly name?: string
  /** Required, because no default is right for everyone. */
  readonly effect: EffectKind
  /** `optional`: a request without a key runs unprotected. `guarded`: it is left to the content guard. */
  readonly key?: 'required' | 'optional' | 'guarded'
  readonly keyFrom?: KeySource
  readonly retainMs?: number
  readonly afterExpiry?: 'new' | 'refuse'
  readonly refuseMs?: number
  readonly leaseMs?: number
  readonly maxRunMs?: number
  readonly unknownMs?: number
  readonly onAbandoned?: OnAbandoned
  readonly probe?: (identity: Identity, attempt: ProbedAttempt) => Promise<ProbeAnswer>
  readonly whileRunning?: WhileRunning
  /** Which fields of a JSON body make it the same command; all of it, when left out. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the body's type is the route's own business.
  readonly fingerprint?: (body: any) => unknown
  /** Raise it when `fingerprint` changes. */
  readonly shape?: number
  /** Wins over the profile's. */
  readonly finality?: Finality
  readonly profile?: ProfileName
  readonly keep?: KeepAnswer
  readonly sensitive?: boolean
  /** Rebuilds the answer with the rights of the current request, where `keep` is `pointer`. */
  readonly rebuild?: (pointer: Pointer, request: N) => Answer | Promise<Answer>
  /** Asked before every replay, with the current request. */
  readonly authorize?: (
    request: N,
    record: { readonly identity: Identity; readonly pointer: Pointer | null },
  ) => boolean | Promise<boolean>
  readonly perKeyLimit?: { readonly attempts: number; readonly perMs: number }
  readonly maxAnswerBytes?: number
  /** For the design checklist: where this route is documented, and what else guards it. */
  readonly about?: RouteNotes
}

/** Answers of the design checklist that no code can give. */
export interface RouteNotes {
  readonly summary?: string
  readonly businessUniqueness?: string
  readonly outbox?: string
  readonly externalCalls?: string
  readonly tests?: string
}

/** Who asks, from the authenticated request. Never the raw token: it changes with every refresh. */
export interface Who {
  readonly tenant: string
  readonly caller: string
}

export const DEFAULT_KEY_HEADER = 'idempotency-key'

export function checkRoute<N>(route: RouteDefinition<N>): void {
  const bad = (option: string, what: string): never => {
    throw new OnceError('bad_option', `Route option \`${option}\` ${what}.`, { details: { option } })
  }
  if (!['transaction', 'repeatable', 'external'].includes(route.effect)) {
    bad('effect', "must be 'transaction', 'repeatable' or 'external': no default is right for everyone")
  }
  if (route.key !== undefined && !['required', 'optional', 'guarded'].includes(route.key)) {
    bad('key', "must be 'required', 'optional' or 'guarded'")
  }
  if (route.keep === 'pointer' && route.rebuild === undefined) bad('rebuild', "is needed where keep is 'pointer'")
  if (route.sensitive === true && (route.keep ?? 'response') === 'response') {
    bad('sensitive', "allows only keep: 'pointer' or 'outcome'")
  }
  if (route.sensitive === true && route.authorize === undefined) bad('authorize', 'must be given for a sensitive route')
}
