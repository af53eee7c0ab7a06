import { ask } from '../parts/ask.ts'

/** Everything that the console asks is below this address. Times are milliseconds, by the clock of the store. */
export const api = '/api/console'

export type RecordState = 'in_progress' | 'succeeded' | 'failed_terminal' | 'failed_retryable' | 'unknown' | 'vacant'

export interface Card {
  readonly id: string
  readonly identity: {
    readonly tenant: string
    readonly caller: string
    readonly operation: string
    readonly key: string
  }
  readonly state: RecordState
  readonly expired: boolean
  readonly attempts: number
  readonly fence: number
  readonly fingerprint: string
  readonly effectKey: string | null
  readonly pointer: { readonly type: string; readonly id: string } | null
  readonly claimedAt: number
  readonly leaseUntil: number | null
  readonly settledAt: number | null
  readonly retryAt: number | null
  readonly unknownSince: number | null
  /** Null is never. */
  readonly expiresAt: number | null
  readonly replays: number
  readonly conflicts: number
  readonly failure: { readonly name: string; readonly message: string; readonly code?: string } | null
  readonly kept: string | null
}

export interface RecordDetail {
  readonly record: Card
  readonly answers: readonly {
    readonly topic: string
    readonly question: string
    readonly answer: string
    readonly alarming: boolean
  }[]
  readonly timeline: readonly { readonly at: number; readonly what: string; readonly note: string | null }[]
  readonly stored: string | null
  readonly storedHidden: boolean
}

export interface OutboxStatus {
  readonly pending: number
  readonly lagMs: number
  readonly failing: number
  readonly parkedKeys: number
  readonly deadLetters: number
  readonly relays: number
  readonly unheldPartitions: number
}

export interface Standing {
  readonly staleLeases: number
  readonly unknownWaiting: number
  readonly outbox?: Partial<OutboxStatus>
  readonly inboxDeadLetters?: Readonly<Record<string, number>>
  readonly runsStuck?: number
  readonly runsUnknown?: number
}

export interface Status {
  readonly store: string
  readonly now: number
  readonly states: Readonly<Record<Exclude<RecordState, 'vacant'>, number>>
  readonly standing: Standing
  readonly lastHour: { readonly claims: number; readonly replays: number; readonly conflicts: number }
  readonly oldestLease: Card | null
}

export interface Rates {
  readonly at: number
  readonly perSecond: Readonly<Record<string, number>>
  readonly latencyMs: {
    readonly request: number | null
    readonly claim: number | null
    readonly effect: number | null
  }
  /** Null while the store cannot be asked. */
  readonly standing: Standing | null
}

export interface EventMessage {
  readonly id: string
  readonly topic: string
  readonly key: string | null
  readonly sequence: number | null
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>> | null
}

export interface Action {
  readonly action: string
  readonly [member: string]: unknown
}

/** What an operator does; the server writes down who and when. */
export async function act<T = unknown>(action: Action): Promise<T> {
  const { result } = await ask<{ readonly result: T }>(`${api}/actions`, { method: 'POST', body: action })
  return result
}

/** The address of a question, with the parts of its query that were given. */
export function question(path: string, query: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  return given.length === 0 ? api + path : `${api}${path}?${new URLSearchParams(given).toString()}`
}
