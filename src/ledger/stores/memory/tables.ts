import type { Fence, RecordId } from '../../core/identity.ts'
import type { InProgress, LedgerRecord, Policy, Unknown } from '../../core/record.ts'
import type { DecisionOf, Request } from '../../core/request.ts'
import type { transition } from '../../core/transition.ts'
import type { AppliedDecision, Repeats } from '../../store/port.ts'
import { policyText } from '../../store/row.ts'

/** What decides: `transition`, or a stand-in that looks on while it decides. */
export type Machine = typeof transition

/** Everything that the store remembers, and what decides about it. */
export interface Tables {
  readonly machine: Machine
  readonly records: Map<RecordId, LedgerRecord>
  /**
   * Ids among which are all that are in progress or unknown, so that the reconciler need not look at all the others. What
   * was settled is dropped now and then: an entry of a map that comes and goes with each request costs the collector more.
   */
  open: RecordId[]
  /** So many ids are looked through for what is still open. */
  tidyAt: number
  /** Only of the records that were asked for again. */
  readonly counts: Map<RecordId, Counts>
  /** What effects wrote: the business data of this little database. */
  readonly values: Map<string, unknown>
  readonly policies: Map<string, Policy>
  /** The shared policy that was asked for last: most stores have one or two. */
  lastPolicy: Policy | null
  /** Store-wide, and never taken back: not by a rollback, not by the sweep. */
  lastFence: Fence
}

export interface Counts extends Repeats {
  readonly repeatedAt: number | null
}

export const UNCOUNTED: Counts = { replays: 0, conflicts: 0, inProgress: 0, repeatedAt: null }

export function createTables(machine: Machine): Tables {
  const maps = { records: new Map(), counts: new Map(), values: new Map(), policies: new Map() }
  return { ...maps, open: [], tidyAt: TIDY_LEAST, machine, lastFence: 0, lastPolicy: null }
}

/** Where a decision reads and writes: the tables themselves, or a transaction's view of them. */
export interface RecordView {
  get(id: RecordId): LedgerRecord | null
  /** `before` is what `get` gave: in a large store, to look for it again is the dearest part of a decision. */
  put(record: LedgerRecord, before: LedgerRecord | null): void
}

export function decide<R extends Request>(
  tables: Tables,
  view: RecordView,
  request: R,
  now: number,
): AppliedDecision<DecisionOf<R>> {
  const before = view.get(request.id)
  const { record, decision } = tables.machine(before, request, { now, fence: ++tables.lastFence })
  if (record !== null && record !== before) {
    // A settle may bring back a record of a store that was reset; later fences must stay above it.
    tables.lastFence = Math.max(tables.lastFence, record.fence)
    view.put(record, before)
  }
  return { decision, record, now }
}

export function putRecord(tables: Tables, record: LedgerRecord, before: LedgerRecord | null): void {
  const kept = compact(tables, record, before)
  tables.records.set(kept.id, kept)
  if (isOpen(kept) && (before === null || !isOpen(before))) {
    tables.open.push(kept.id)
    if (tables.open.length >= tables.tidyAt) openRecords(tables)
  }
  if (before !== null && before.incarnation !== kept.incarnation) tables.counts.delete(kept.id)
}

type Open = InProgress | Unknown

function isOpen(record: LedgerRecord): record is Open {
  return record.state === 'in_progress' || record.state === 'unknown'
}

/** Below this many ids, what was settled is not worth dropping. */
const TIDY_LEAST = 1_024

/** Those in progress or unknown; what was settled meanwhile is dropped from the list. */
export function openRecords(tables: Tables): readonly Open[] {
  const open = new Map<RecordId, Open>()
  for (const id of tables.open) {
    const record = tables.records.get(id)
    if (record !== undefined && isOpen(record)) open.set(id, record)
  }
  tables.open = [...open.keys()]
  // Twice as many as were found: so looking through them costs each request a bounded share.
  tables.tidyAt = Math.max(TIDY_LEAST, 2 * open.size)
  return [...open.values()]
}

export function removeRecord(tables: Tables, id: RecordId): void {
  tables.records.delete(id)
  tables.counts.delete(id)
}

/** Distinct policies come from code, one per operation; past this many they are kept per record instead. */
const SHARED_POLICIES = 1_024

/**
 * A settled record lives for days, so what it holds is as small as it can be: policies and empty histories are shared,
 * and texts are freed of the longer ones that they were cut from or joined of.
 */
function compact(tables: Tables, record: LedgerRecord, before: LedgerRecord | null): LedgerRecord {
  const policy = before?.policy === record.policy ? record.policy : sharedPolicy(tables, record.policy)
  const own = before === null ? ownTexts(record) : record
  if (record.state !== 'succeeded' && record.state !== 'failed_terminal') {
    if (own === record && policy === record.policy) return record
    return { ...record, id: own.id, identity: own.identity, fingerprint: own.fingerprint, claimId: own.claimId, policy }
  }
  // The usual way: the holder's own word, made by `settledAs` from a record that is compact already.
  if (before?.state === 'in_progress' && policy === record.policy) return record
  // Written out field by field: an object that was made by spreading several others takes twice the room.
  const { state, fence, incarnation, attempts, claimedAt, pointer, awaited, settledAt, expiresAt, goneAt } = record
  const small = {
    state,
    id: own.id,
    identity: own.identity,
    fingerprint: own.fingerprint,
    incarnation,
    fence,
    claimId: own.claimId,
    attempts,
    claimedAt,
    pointer,
    policy,
    awaited,
    history: record.history.length === 0 ? NO_HISTORY : record.history,
    outcome: record.outcome,
    settledAt,
    expiresAt,
    goneAt,
  }
  return record.facts === undefined ? small : { ...small, facts: record.facts }
}

const NO_HISTORY: LedgerRecord['history'] = []

type Texts = Pick<LedgerRecord, 'id' | 'identity' | 'fingerprint' | 'claimId'>

/** Copies, because the caller's own objects may change after the call. */
function ownTexts({ id, identity, fingerprint, claimId }: LedgerRecord): Texts {
  const { tenant, caller, operation, key, batch } = identity
  const single = { tenant, caller, operation, key: flat(key) }
  return {
    id: flat(id),
    identity: batch === undefined ? single : { ...single, batch: flat(batch) },
    fingerprint: flat(fingerprint),
    claimId: flat(claimId),
  }
}

/** Identities and digests are shorter, and share one buffer: a buffer for each takes longer than the copy. */
const SCRATCH_CHARS = 256
const UTF8_BYTES_PER_CHAR = 3
const scratch = Buffer.alloc(SCRATCH_CHARS * UTF8_BYTES_PER_CHAR)

/** V8 neither joins nor cuts shorter texts: it copies them. */
const JOINED_CHARS = 13

/** The same text, standing alone in memory: a UUID that was joined of its parts takes eight times its length. */
function flat(text: string): string {
  if (text.length < JOINED_CHARS || !text.isWellFormed()) return text
  if (text.length > SCRATCH_CHARS) return Buffer.from(text).toString()
  return scratch.toString('utf8', 0, scratch.write(text))
}

function sharedPolicy(tables: Tables, policy: Policy): Policy {
  if (tables.lastPolicy !== null && samePolicy(tables.lastPolicy, policy)) return tables.lastPolicy
  const text = policyText(policy)
  const shared = tables.policies.get(text) ?? { ...policy }
  if (tables.policies.size < SHARED_POLICIES) tables.policies.set(text, shared)
  tables.lastPolicy = shared
  return shared
}

/** Field by field, because writing a policy as text takes as long as deciding about a claim. */
function samePolicy(a: Policy, b: Policy): boolean {
  return (
    a.retainMs === b.retainMs &&
    a.refuseMs === b.refuseMs &&
    a.unknownMs === b.unknownMs &&
    a.onAbandoned === b.onAbandoned &&
    a.retainFrom === b.retainFrom
  )
}
