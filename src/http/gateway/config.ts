import type { WhileRunning } from '../../ledger/definition.ts'
import type { ContentKey } from '../protocol/content-options.ts'
import type { ProfileName } from '../protocol/profiles.ts'
import type { Finality } from '../protocol/record.ts'
import type { KeySource } from '../protocol/route.ts'
import type { RegionRouterOptions } from '../region/region.ts'

/** What a gateway does, as `onceonly.config.ts` or a JSON file says it. */
export interface GatewayConfig {
  /**
   * Where requests go that no rule sends elsewhere: `http://127.0.0.1:3000`. A path in it stands before every target.
   */
  readonly upstream?: string
  /** More upstreams, for rules to name. */
  readonly upstreams?: Readonly<Record<string, string>>
  /** Certificates that `https` upstreams are trusted by, as PEM; those that Node knows, when left out. */
  readonly ca?: string
  /** The first rule that fits a request decides. A request that none fits is passed on as it is. */
  readonly routes?: readonly RouteRule[]
  /** Part of every identity; `gateway`, when left out. */
  readonly tenant?: string
  /** For rules that do not say it themselves. */
  readonly strict?: boolean
  /** Whether `X-Forwarded-*` of clients is trusted: only when no other than your own proxies can reach the gateway. */
  readonly trustForwarded?: boolean
  /** Upstreams see the client's `Host`, or their own. */
  readonly host?: 'client' | 'upstream'
  readonly timeouts?: Timeouts
  readonly maxBodyBytes?: number
  /** Problem types are URIs below this; pages of the gateway's own, when left out: `/.onceonly/problems`. */
  readonly problemBase?: string
  /** The gateway's own paths, such as its readiness, begin with this; `/.onceonly`, when left out. */
  readonly ownPath?: string
  /** Readers of the metrics send it as `Authorization: Bearer …`. Without one the metrics are for this machine only. */
  readonly metricsToken?: string
  readonly region?: RegionRouterOptions
  /** Tokens that the gateway verifies itself: a refreshed one of the same issuer and subject gets the stored answer. */
  readonly jwks?: JwksConfig
  /** The console, on a port of its own; there is none, when left out. */
  readonly console?: ConsoleConfig
}

/** The issuers whose tokens are verified, and their keys. Signatures may be RS256, PS256, ES256 or EdDSA. */
export type JwksConfig = {
  /** Tokens of other issuers are not verified. */
  readonly issuer: string
  /** A token is for one of these. Null, written out, where the issuer names none: then every token of it counts. */
  readonly audience: string | readonly string[] | null
} & JwksSource

type JwksSource =
  /** An `https` address, or one of this machine; `ca` are certificates that it is trusted by, as PEM. */
  | { readonly url: string; readonly ca?: string }
  /** A file with a key set, which is read again as the address would be. */
  | { readonly file: string }
  /** Public keys, each as a JWK. */
  | { readonly keys: readonly Readonly<Record<string, unknown>>[] }

/** Where people look at the gateway's records and act on them. */
export interface ConsoleConfig {
  readonly port: number
  /** `127.0.0.1`, when left out; beyond this machine only with a token. */
  readonly host?: string
  /** Grants reading and acting. Without any token one is made at every start, for this machine only. */
  readonly operatorToken?: string
  /** Grants reading. */
  readonly viewerToken?: string
}

/** Which requests are protected, and how. */
export interface RouteRule {
  /** Methods that change something: safe ones are never touched. */
  readonly method: string | readonly string[]
  /** `/v1/charges`, `/v1/charges/:id/refunds`; a last segment `*` stands for all that follows. */
  readonly path: string
  /**
   * True: only this path, as it is written. Left out, the rule also has what services commonly take for the same path:
   * `/PAY`, `/pay/`, `//pay`, `/pay;x=1`, `/p%61y`, `/x/..;/pay`.
   */
  readonly strict?: boolean
  /** Part of every identity. Left out, the method and the concrete path stand for it. */
  readonly operation?: string
  /** A request without a key is refused; or passed on without protection (the default), unless `content` is given. */
  readonly key?: 'required' | 'optional'
  readonly keyFrom?: KeySource
  /**
   * The caller of a request, because a key belongs to its caller; `shared`: all callers are one. By default it is derived
   * from the credential by what stays the same when that is renewed: issuer and subject of a JWT, the access key id of AWS
   * signatures, the user of Basic.
   */
  readonly caller?: 'shared' | CallerSource
  readonly tenant?: string | CallerSource
  readonly profile?: ProfileName
  /** Wins over the profile's. */
  readonly finality?: Finality
  readonly upstream?: string
  /** The upstream answers a repeated key from its own record: what is in doubt is sent again under the same key. */
  readonly honoursKeys?: boolean
  /**
   * `trusted`: every request that reaches the gateway as a caller may see that caller's responses. Without it, and without
   * `authorize`, a retry is answered only under the credential of the first request; any other gets 409
   * `credential-changed`.
   */
  readonly replay?: 'trusted' | 'same-credential'
  /** Statuses by which the upstream says that nothing happened, such as `[500]`: the next retry is forwarded. */
  readonly notDone?: readonly number[]
  /** Asked before a body is replayed: a GET on the upstream, with the headers of the retry. 2xx allows it. */
  readonly authorize?: { readonly path: string }
  readonly whileRunning?: WhileRunning
  readonly retainMs?: number
  readonly keepHeaders?: readonly string[]
  readonly maxAnswerBytes?: number
  readonly maxBodyBytes?: number
  readonly timeouts?: Timeouts
  /**
   * Content-based deduplication, for requests without a key: method, path, query, preconditions and the whole body are the
   * key. Each caller has contents of its own, unless `scope` says otherwise; the store may take 250 ms to decide.
   */
  readonly content?: Omit<ContentKey, 'of'>
}

/** Where the name of a caller stands. What is a credential is stored as its digest. */
export type CallerSource = (
  | { readonly header: string }
  /** The cookie of a session; others beside it count for nothing. */
  | { readonly cookie: string }
  /** A claim of the bearer token, which the upstream verifies, not the gateway. */
  | { readonly claim: string }
) & {
  /** Requests without it are one caller of their own, instead of being refused. */
  readonly anonymous?: boolean
}

export interface Timeouts {
  readonly connectMs?: number
  readonly answerMs?: number
  readonly bodyMs?: number
  readonly idleMs?: number
}
