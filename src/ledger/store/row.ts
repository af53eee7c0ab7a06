import type { Identity } from '../core/identity.ts'
import type {
  Facts,
  HistoryEntry,
  Kept,
  LedgerRecord,
  OnAbandoned,
  Pointer,
  Policy,
  ProbeLease,
} from '../core/record.ts'

/** One record as the SQL stores keep it. Times are milliseconds of the store's clock. */
export interface RecordRow {
  readonly id: string
  readonly tenant: string
  readonly caller: string
  readonly operation: string
  readonly key: string
  readonly batch: string | null
  readonly fingerprint: string
  readonly state: number
  readonly claim_id: string
  readonly fence: number
  readonly incarnation: number
  readonly attempts: number
  readonly claimed_at: number
  /** The lease's end, the time of the next try, or the end of an unknown: whatever the state waits for. */
  readonly due_at: number | null
  readonly settled_at: number | null
  readonly expires_at: number | null
  readonly gone_at: number | null
  readonly kept: number | null
  readonly outcome: string | null
  readonly pointer: string | null
  readonly policy: string
  readonly awaited: number
  /** History and the rarer fields, as JSON; null for the usual life of a record. */
  readonly detail: string | null
}

/** Numbers are part of the stored format: never change one. */
export const stateCode = {
  reserved: 0,
  running: 1,
  succeeded: 2,
  failed_terminal: 3,
  failed_retryable: 4,
  lapsed: 5,
  unknown: 6,
  released: 7,
  forgotten: 8,
} as const

const keptCodes: readonly Kept[] = ['response', 'pointer', 'outcome', 'not_stored']

export const keptCode = { response: 0, pointer: 1, outcome: 2, not_stored: 3 } as const satisfies Record<Kept, number>

export function policyText(p: Policy): string {
  // Most policies count from settling: the word is left out, and the text stays as short as it can be.
  return `${p.onAbandoned}:${p.retainMs}:${p.refuseMs}:${p.unknownMs}${p.retainFrom === 'claimed' ? ':claimed' : ''}`
}

function policyOf(text: string): Policy {
  const [onAbandoned, retainMs, refuseMs, unknownMs, retainFrom] = text.split(':')
  return {
    onAbandoned: onAbandoned as OnAbandoned,
    retainMs: Number(retainMs),
    ...(retainFrom === 'claimed' ? { retainFrom } : {}),
    refuseMs: Number(refuseMs),
    unknownMs: Number(unknownMs),
  }
}

interface Detail {
  readonly history?: readonly HistoryEntry[]
  readonly facts?: Facts
  readonly reason?: string | null
  readonly probes?: number
  readonly probeAt?: number
  readonly probe?: ProbeLease | null
}

function detailOf(record: LedgerRecord): string | null {
  const { facts } = record
  const common = {
    ...(record.history.length === 0 ? {} : { history: record.history }),
    ...(facts === undefined ? {} : { facts }),
  }
  if (record.state === 'unknown') {
    const { reason, probes, probeAt, probe } = record
    return JSON.stringify({ ...common, reason, probes, probeAt, probe } satisfies Detail)
  }
  return record.history.length === 0 && facts === undefined ? null : JSON.stringify(common satisfies Detail)
}

export function pointerText({ type, id }: Pointer): string {
  return JSON.stringify({ type, id })
}

export function toRow(record: LedgerRecord): RecordRow {
  const { id, identity, fingerprint, fence, incarnation, attempts } = record
  const common = {
    id,
    tenant: identity.tenant,
    caller: identity.caller,
    operation: identity.operation,
    key: identity.key,
    batch: identity.batch ?? null,
    fingerprint,
    claim_id: record.claimId,
    fence,
    incarnation,
    attempts,
    claimed_at: record.claimedAt,
    pointer: record.pointer === null ? null : pointerText(record.pointer),
    policy: policyText(record.policy),
    awaited: record.awaited ? 1 : 0,
    detail: detailOf(record),
  }
  const empty = { due_at: null, settled_at: null, expires_at: null, gone_at: null, kept: null, outcome: null }
  switch (record.state) {
    case 'in_progress':
      return {
        ...common,
        ...empty,
        state: record.started ? stateCode.running : stateCode.reserved,
        due_at: record.leaseUntil,
      }
    case 'unknown':
      return { ...common, ...empty, state: stateCode.unknown, settled_at: record.since, due_at: record.abandonAt }
    case 'vacant':
      return {
        ...common,
        ...empty,
        state: record.forgotten ? stateCode.forgotten : stateCode.released,
        gone_at: record.goneAt,
      }
    case 'succeeded':
    case 'failed_terminal':
    case 'failed_retryable': {
      const retryable = record.state === 'failed_retryable'
      return {
        ...common,
        state: retryable && record.lapsed ? stateCode.lapsed : stateCode[record.state],
        due_at: retryable ? record.retryAt : null,
        settled_at: record.settledAt,
        expires_at: record.expiresAt,
        gone_at: record.goneAt,
        kept: keptCode[record.outcome.kept],
        outcome: record.outcome.data,
      }
    }
  }
}

export function fromRow(row: RecordRow): LedgerRecord {
  const identity: Identity = {
    tenant: row.tenant,
    caller: row.caller,
    operation: row.operation,
    key: row.key,
    ...(row.batch === null ? {} : { batch: row.batch }),
  }
  const detail: Detail = row.detail === null ? {} : (JSON.parse(row.detail) as Detail)
  const common = {
    id: row.id,
    identity,
    fingerprint: row.fingerprint,
    incarnation: row.incarnation,
    fence: row.fence,
    claimId: row.claim_id,
    attempts: row.attempts,
    claimedAt: row.claimed_at,
    pointer: row.pointer === null ? null : (JSON.parse(row.pointer) as Pointer),
    policy: policyOf(row.policy),
    awaited: row.awaited === 1,
    history: detail.history ?? [],
    ...(detail.facts === undefined ? {} : { facts: detail.facts }),
  }
  const dueAt = row.due_at ?? 0
  switch (row.state) {
    case stateCode.reserved:
    case stateCode.running:
      return { ...common, state: 'in_progress', started: row.state === stateCode.running, leaseUntil: dueAt }
    case stateCode.unknown: {
      const { reason = null, probes = 0, probeAt = 0, probe = null } = detail
      return {
        ...common,
        state: 'unknown',
        since: row.settled_at ?? 0,
        abandonAt: dueAt,
        reason,
        probes,
        probeAt,
        probe,
      }
    }
    case stateCode.released:
    case stateCode.forgotten:
      return { ...common, state: 'vacant', goneAt: row.gone_at ?? 0, forgotten: row.state === stateCode.forgotten }
  }
  const settled = {
    outcome: { kept: keptCodes[row.kept ?? 0] ?? 'not_stored', data: row.outcome },
    settledAt: row.settled_at ?? 0,
    expiresAt: row.expires_at ?? 0,
    goneAt: row.gone_at ?? 0,
  }
  switch (row.state) {
    case stateCode.succeeded:
      return { ...common, ...settled, state: 'succeeded' }
    case stateCode.failed_terminal:
      return { ...common, ...settled, state: 'failed_terminal' }
    case stateCode.failed_retryable:
    case stateCode.lapsed:
      return {
        ...common,
        ...settled,
        state: 'failed_retryable',
        retryAt: dueAt,
        lapsed: row.state === stateCode.lapsed,
      }
  }
  throw new Error(`record ${row.id} has the unknown state code ${row.state}`)
}
