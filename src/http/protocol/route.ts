import { OnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import type { OnAbandoned, Pointer } from '../../ledger/core/record.ts'
import type { EffectKind, LeasedDefinition, ProbeAnswer, ProbedAttempt, WhileRunning } from '../../ledger/definition.ts'
import type { ContentKey } from './content-options.ts'
import { checkContent } from './content-options.ts'
import type { Answer } from './exchange.ts'
import { refuseUnknown } from './options.ts'
import type { ProfileName } from './profiles.ts'
import type { Finality, KeepAnswer } from './record.ts'
import { canBeKept } from './record.ts'

/** Where a caller's key is found. */
export type KeySource =
  | { readonly header: string }
  /** A field of a JSON body, with dots for nesting. */
  | { readonly field: string }

/** What a route says about itself. `N` is the framework's own request, `B` the type of its body. */
// oxlint-disable-next-line typescript/no-explicit-any -- where the framework does not know the type of a body.
export type RouteDefinition<N, B = any> = RouteOptions<N> & KeyPolicy<B>

/** A request without a key is refused; or it runs without protection, unless its content is its key. */
type KeyPolicy<B> =
  | {
      /** A request without a key is refused, or runs without protection unless `content` is its key. @default 'required' */
      readonly key?: 'required'
      readonly content?: undefined
    }
  | {
      readonly key: 'optional'
      /** What makes two requests without a key the same; their window and its scope. @default none */
      readonly content?: ContentKey<B> | undefined
    }

/**
 * Ties a response to a proof of its first caller's identity: the proof is recorded as a header, and the response is replayed
 * only to requests for which `same` holds. All others get `credential-changed`, and the header is never sent to a client.
 */
export interface AnswerBinding<N> {
  readonly header: string
  same(request: N, recorded: string): boolean
}

interface RouteOptions<N> {
  /**
   * Part of every identity. Left out, the method and the concrete path stand for it.
   * @default the method and the concrete path
   */
  readonly name?: string
  /** Required, because no default is right for everyone. */
  readonly effect: EffectKind
  /** Where the key is: a header, or a field of a JSON body. @default the `Idempotency-Key` header */
  readonly keyFrom?: KeySource
  /** How long an answer is kept and replayed, in milliseconds. @default 7 days */
  readonly retainMs?: number
  /** Retention counts from settling; or, as the window of a content key, from the claim. @default 'settled' */
  readonly retainFrom?: 'settled' | 'claimed'
  /** Whether an expired key is a new key, or refused for `refuseMs`. @default 'new' */
  readonly afterExpiry?: 'new' | 'refuse'
  /** How long an expired key is refused, in milliseconds; only with `afterExpiry: 'refuse'`. @default `retainMs` */
  readonly refuseMs?: number
  /** How long an attempt owns its key without a heartbeat, in milliseconds, from 500. @default 30_000 */
  readonly leaseMs?: number
  /** The longest that the handler may take, in milliseconds. @default 15 minutes */
  readonly maxRunMs?: number
  /** How long an unknown outcome waits to be resolved, in milliseconds. @default 30 days */
  readonly unknownMs?: number
  /**
   * What the end of a lease without an outcome means.
   * @default 'probe' with a `probe`, else 'rerun' for repeatable effects and 'hold' for external ones
   */
  readonly onAbandoned?: OnAbandoned
  /** Finds out whether an effect of unknown outcome happened. @default none */
  readonly probe?: (identity: Identity, attempt: ProbedAttempt) => Promise<ProbeAnswer>
  /**
   * Which thrown errors prove that nothing happened; `singleCall` for handlers that make one outgoing call.
   * @default none
   */
  readonly classify?: LeasedDefinition<unknown>['classify']
  /**
   * What a second request gets while the first runs: it waits, gets 409, or 202 with the place of the status.
   * @default { waitMs: 10_000 }
   */
  readonly whileRunning?: WhileRunning
  /**
   * A first caller may send `Prefer: respond-async, wait=10`: when the handler has not answered in time, the caller gets 202 with
   * the `Location` of the operation, and the handler continues. By default the preference is ignored.
   * @default false
   */
  readonly respondAsync?: boolean
  /** Replays an answer only to requests that prove the first caller's identity. @default none */
  readonly bound?: AnswerBinding<N>
  /** Which fields of a JSON body make it the same command; all of it, when left out. @default the whole body */
  // oxlint-disable-next-line typescript/no-explicit-any -- the body's type is the route's own business.
  readonly fingerprint?: (body: any) => unknown
  /**
   * Raise it when `fingerprint` changes, and give the old form under its number in `shapes`: `(body) => body` for all of
   * it. A record of a shape that is in neither cannot be compared, so its key is refused as reused.
   * @default 1
   */
  readonly shape?: number
  /** Older forms of `fingerprint`, by their `shape`. @default none */
  // oxlint-disable-next-line typescript/no-explicit-any -- as for `fingerprint`.
  readonly shapes?: Readonly<Record<number, (body: any) => unknown>>
  /** Wins over the profile's. @default the profile's */
  readonly finality?: Finality
  /** Selects the error format of this route. @default that of `createProtect` */
  readonly profile?: ProfileName
  /** How much of an answer is kept: all of it, a pointer, or only its status. @default 'response' */
  readonly keep?: KeepAnswer
  /**
   * Headers of the answer that are kept beside the usual ones: `Location`, `ETag`, `Link` and `Content-*`.
   * @default none
   */
  readonly keepHeaders?: readonly string[]
  /**
   * The answer must not be stored: allows only `keep: 'pointer'` or `'outcome'`, and needs `authorize`.
   * @default false
   */
  readonly sensitive?: boolean
  /** Rebuilds the answer with the rights of the current request, where `keep` is `pointer`. @default none */
  readonly rebuild?: (pointer: Pointer, request: N) => Answer | Promise<Answer>
  /** Asked before every replay, with the current request. @default every replay is allowed */
  readonly authorize?: (
    request: N,
    record: { readonly identity: Identity; readonly pointer: Pointer | null },
  ) => boolean | Promise<boolean>
  /**
   * How often one process answers one caller under one key within a time, in milliseconds. Every attempt counts, replays
   * too: a client that retries without a pause gets 429, and its answer when the time is over.
   * @default off
   */
  readonly perKeyLimit?: { readonly attempts: number; readonly perMs: number }
  /** Larger answers are passed on, but not kept; 1 MiB when left out, and at most. @default 1 MiB */
  readonly maxAnswerBytes?: number
  /** For the design checklist: what no option of the route says. @default none */
  readonly about?: RouteNotes
}

/** Every adapter's protected route carries what it was made of, for the design checklist and the OpenAPI document. */
export interface ProtectedRoute<N> {
  readonly definition: RouteDefinition<N>
}

/** Answers of the design checklist that no code can give. */
export interface RouteNotes {
  /** Where its users read about it. */
  readonly documentation?: string
  readonly businessUniqueness?: string
  readonly outbox?: string
  readonly externalCalls?: string
  readonly tests?: string
}

/** Tenant and caller, from the authenticated request. Never the raw token: it changes with every refresh. */
export interface Who {
  readonly tenant: string
  readonly caller: string
}

export const DEFAULT_KEY_HEADER = 'Idempotency-Key'

/** The largest answer that is kept: in the record, base64-encoded, it still fits into the store's bound. */
export const MAX_ANSWER_BYTES = 1_024 * 1_024

/** Every option by its name: the compiler refuses this table when an option is missing in it. */
const routeOptions = {
  name: true,
  effect: true,
  key: true,
  content: true,
  keyFrom: true,
  retainMs: true,
  retainFrom: true,
  afterExpiry: true,
  refuseMs: true,
  leaseMs: true,
  maxRunMs: true,
  unknownMs: true,
  onAbandoned: true,
  probe: true,
  classify: true,
  whileRunning: true,
  respondAsync: true,
  bound: true,
  fingerprint: true,
  shape: true,
  shapes: true,
  finality: true,
  profile: true,
  keep: true,
  keepHeaders: true,
  sensitive: true,
  rebuild: true,
  authorize: true,
  perKeyLimit: true,
  maxAnswerBytes: true,
  about: true,
} satisfies Record<keyof RouteDefinition<never>, true>

export function checkRoute<N>(route: RouteDefinition<N>): void {
  if (typeof route !== 'object' || route === null) {
    const text =
      "protect takes the definition of the route first, such as { name: 'order.place', effect: 'external' }, then its handler."
    throw new OnceError('bad_option', text, { details: { option: 'definition' } })
  }
  refuseUnknown(`The route ${route.name ?? 'without a name'}`, route, Object.keys(routeOptions))
  const bad = (option: string, what: string): never => {
    throw new OnceError('bad_option', `Route option \`${option}\` ${what}.`, { details: { option } })
  }
  if (!['transaction', 'repeatable', 'external'].includes(route.effect)) {
    bad('effect', "must be 'transaction', 'repeatable' or 'external': no default is right for everyone")
  }
  if (route.key !== undefined && !['required', 'optional'].includes(route.key)) {
    bad('key', "must be 'required' or 'optional'")
  }
  checkContent(route)
  if (route.keep === 'pointer' && route.rebuild === undefined) bad('rebuild', "is needed where keep is 'pointer'")
  if (route.sensitive === true && (route.keep ?? 'response') === 'response') {
    bad('sensitive', "allows only keep: 'pointer' or 'outcome'")
  }
  if (route.sensitive === true && route.authorize === undefined) bad('authorize', 'must be given for a sensitive route')
  // The reconciler finds a probe by the operation's name; the resources of an unnamed route have many.
  if (route.probe !== undefined && route.name === undefined) bad('name', 'must be given for a route with a `probe`')
  if (Object.values(route.shapes ?? {}).some((form) => typeof form !== 'function')) {
    bad('shapes', 'must hold functions under their numbers')
  }
  const { maxAnswerBytes = MAX_ANSWER_BYTES } = route
  if (!Number.isSafeInteger(maxAnswerBytes) || maxAnswerBytes < 0 || maxAnswerBytes > MAX_ANSWER_BYTES) {
    bad('maxAnswerBytes', `must be a whole number from 0 to ${MAX_ANSWER_BYTES}`)
  }
  for (const name of route.keepHeaders ?? []) {
    if (!canBeKept(name.toLowerCase())) bad('keepHeaders', `must not name \`${name}\`, which belongs to one exchange`)
  }
}
