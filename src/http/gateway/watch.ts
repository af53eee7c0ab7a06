import type { IncomingMessage, ServerResponse } from 'node:http'
import { keyHashOf } from '../../ledger/core/digest.ts'
import type { LedgerErrorCode } from '../../ledger/core/errors.ts'
import type { Answer } from '../protocol/exchange.ts'
import { headerOf, REPLAYED_HEADER } from '../protocol/exchange.ts'
import { parseKey } from '../protocol/key.ts'
import type { Who } from '../protocol/route.ts'
import type { Asked, Rule } from './rule.ts'

/** Events of a gateway. Keys are named by their hash; bodies, queries and credentials stay out. */
export type GatewayEvent = AccessEvent | Guarded | OperatorActed

/** An operator acted at the console, or tried to. */
export interface OperatorActed {
  readonly kind: 'operator'
  readonly action: string
  /** As they named themselves. */
  readonly by: string
}

/** One for every request, however it ended: retries are requests of their own. */
export interface AccessEvent {
  readonly kind: 'access'
  readonly method: string
  /** Without its query, which may hold secrets. */
  readonly path: string
  /** The rule that decided: its method and pattern, or the operation's name. Null for what is only passed on. */
  readonly route: string | null
  readonly tenant: string | null
  readonly caller: string | null
  readonly keyHash: string | null
  /** Null when the client did not see the end of an answer. */
  readonly status: number | null
  /** What was decided; null where nothing was. */
  readonly decision: GatewayDecision | null
  readonly durationMs: number
}

/** The content of a request without a key was found once more, or in flight; or the store was down. */
export interface Guarded {
  readonly kind: 'guard'
  readonly what: 'blocked' | 'pending' | 'error'
  readonly route: string
  readonly tenant: string
  /** Equal content has an equal hash. */
  readonly hash: string
}

export type GatewayDecision =
  | 'first'
  | 'dedup_replay'
  | 'in_progress'
  | 'conflict'
  | 'retry_later'
  | 'unknown'
  | 'expired'
  | 'too_many'
  | 'unavailable'
  /** Not checked, because it has no key; or because the store was down, for one with a content. */
  | 'unkeyed'
  | 'unguarded'
  /** The home of its key, another region, has answered. */
  | 'elsewhere'
  /** There was no room for it; nothing was begun. */
  | 'overloaded'
  | 'refused'

/** What becomes known of a request on its way. */
export interface Note {
  rule: Rule | null
  asked: Asked | null
  decision: GatewayDecision | null
}

export type Watch = (event: GatewayEvent) => void

const byCode = {
  key_reused: 'conflict',
  in_progress: 'in_progress',
  retry_later: 'retry_later',
  outcome_unknown: 'unknown',
  key_expired: 'expired',
  too_many_attempts: 'too_many',
  too_many_waiters: 'in_progress',
  store_unavailable: 'unavailable',
  store_busy: 'unavailable',
} as const satisfies Partial<Record<LedgerErrorCode, GatewayDecision>>

const LEAST_REFUSAL = 400

/** The word for an answer that no upstream gave to this request. */
export function decisionOf({ status, headers }: Answer, refused?: string): GatewayDecision {
  if (refused !== undefined) return refused in byCode ? byCode[refused as keyof typeof byCode] : 'refused'
  if (headerOf(headers, REPLAYED_HEADER) === 'true') return 'dedup_replay'
  return status >= LEAST_REFUSAL ? 'refused' : 'elsewhere'
}

/** Begins to watch a request; reports it when its connection is done with it. */
export function watchRequest(notify: Watch | undefined, message: IncomingMessage, response: ServerResponse): Note {
  const note: Note = { rule: null, asked: null, decision: null }
  if (notify === undefined) return note
  const begin = performance.now()
  response.once('close', () => {
    const who = whoOf(note)
    notify({
      kind: 'access',
      method: message.method ?? '',
      path: pathOf(message),
      route: note.rule?.label ?? null,
      tenant: who?.tenant ?? null,
      caller: who?.caller ?? null,
      keyHash: hashOf(note.rule, message),
      status: response.writableFinished ? response.statusCode : null,
      decision: note.decision,
      durationMs: Math.round((performance.now() - begin) * TENTHS) / TENTHS,
    })
  })
  return note
}

const TENTHS = 10
/** A longer one would make the log unreadable. */
const MOST_PATH_CHARS = 512

function pathOf({ url = '/' }: IncomingMessage): string {
  const query = url.indexOf('?')
  return url.slice(0, Math.min(query < 0 ? url.length : query, MOST_PATH_CHARS))
}

export function whoOf({ rule, asked }: Note): Who | null {
  if (rule === null || asked === null) return null
  try {
    const who = rule.who(asked)
    return who instanceof Promise ? null : who
  } catch {
    // A client without credentials was refused for that.
    return null
  }
}

function hashOf(rule: Rule | null, { headersDistinct }: IncomingMessage): string | null {
  if (rule === null) return null
  const found = parseKey(headersDistinct[rule.keyHeader.toLowerCase()] ?? [])
  return 'key' in found ? keyHashOf(found.key) : null
}
