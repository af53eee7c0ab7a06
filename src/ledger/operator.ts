import type { Context } from './context.ts'
import { refuseInsideTransaction } from './context.ts'
import { encodeValue } from './core/codec.ts'
import { OnceError } from './core/errors.ts'
import type { Fence, Identity } from './core/identity.ts'
import { checkIdentity, recordIdOf } from './core/identity.ts'
import { defaults, HOUR, limits } from './core/limits.ts'
import type { LedgerRecord } from './core/record.ts'
import type { OperatorDecision, Resolution } from './core/request.ts'
import type { Declared } from './declared.ts'
import type { Ending } from './granted.ts'
import type { Packed } from './outcome.ts'
import { checkPointer, packFailure, packValue } from './outcome.ts'
import type { BusyCaller, Page, RecordFilter, RecordView, StateCounts } from './store/port.ts'

/** Frees an unknown for another attempt, with the same effect keys. */
export const rerun = { kind: 'rerun' } as const

export interface OperatorOptions {
  /** The operator: kept in the record's history. @default not recorded */
  readonly by?: string
  /** Only if the record is still the one that was looked at. @default whatever the record is now */
  readonly ifFence?: Fence
}

/** Queries and actions for operators. */
export interface Operator {
  get(identity: Identity): Promise<RecordView | null>
  /** By the id that refusals carry in their details. */
  find(id: string): Promise<RecordView | null>
  list(
    filter?: RecordFilter,
    page?: { readonly limit?: number; readonly cursor?: string | null },
  ): Promise<Page<RecordView>>
  count(filter?: RecordFilter): Promise<StateCounts>
  /** Leases past their end, oldest first. */
  lapsed(options?: { readonly limit?: number }): Promise<readonly LedgerRecord[]>
  /** Callers with the most attempts since a time of the store's clock; the last hour, when left out. */
  busiest(options?: { readonly since?: number; readonly limit?: number }): Promise<readonly BusyCaller[]>
  /** The person's word on an unknown outcome. */
  resolve(identity: Identity, ending: Ending | typeof rerun, options?: OperatorOptions): Promise<void>
  /** Takes a running claim away from its holder: the next claim runs, with the same effect keys. */
  release(identity: Identity, options?: OperatorOptions): Promise<void>
  /** Makes the identity new again, with new effect keys. */
  forget(identity: Identity, options?: OperatorOptions): Promise<void>
  /**
   * Removes what a record says about its command: response, pointer and notes. Its key stays taken until its window ends,
   * and a retry is answered that the response is not stored. By the id of the record; one whose attempt still runs is left.
   */
  erase(id: string): Promise<Erased>
}

/** What became of it: `running` and `gone` are left as they are; `empty` had nothing more to erase. */
export type Erased = 'erased' | 'empty' | 'running' | 'gone'

const call = { timeoutMs: limits.storeCallMs }
const ANONYMOUS = 'operator'
const NOT_HELD = 'Only a claim that is held can be released; look at its state first.'
const LAPSED_ROWS = 100
const BUSIEST_ROWS = 20
/** A record that others change at the same time is read again. */
const ERASE_TRIES = 5

export function createOperator(context: Context, declared: ReadonlyMap<string, Declared>): Operator {
  const { queries, clock } = context.store

  function settle(identity: Identity, decision: OperatorDecision, isRelease = false): void {
    if (decision.kind === 'done') return
    const what = `${identity.operation} under key ${JSON.stringify(identity.key)}`
    const next = isRelease && decision.why === 'not_resolvable' ? { next: NOT_HELD } : {}
    throw new OnceError(decision.why, `No action on ${what}.`, next)
  }

  function resolutionOf(identity: Identity, ending: Ending | typeof rerun): Resolution {
    if (ending.kind === 'rerun') return ending
    if (ending.kind === 'failed') return { kind: 'failed', outcome: packFailure(ending.error) }
    const { outcome, pointer } = packResolved(declared.get(identity.operation), ending.value)
    const named = ending.pointer === null ? pointer : checkPointer(ending.pointer)
    return { kind: 'succeeded', outcome, pointer: named }
  }

  async function forget(identity: Identity, options: OperatorOptions, onlyRunning: boolean): Promise<void> {
    refuseInsideTransaction(onlyRunning ? 'release' : 'forget')
    checkIdentity(identity)
    const { by = ANONYMOUS, ifFence = null } = options
    const id = recordIdOf(identity)
    const { decision } = await context.requests.apply({ kind: 'forget', id, by, ifFence, onlyRunning })
    settle(identity, decision, onlyRunning)
    context.cache.drop([id])
    context.events.emit({ kind: onlyRunning ? 'released' : 'forgotten', identity, by })
  }

  return {
    async get(identity) {
      checkIdentity(identity)
      return (await queries.get(recordIdOf(identity), call)).view
    },
    async find(id) {
      if (!/^[0-9a-f]{32}$/.test(id)) return null
      return (await queries.get(id, call)).view
    },
    list: (filter = {}, page = {}) => {
      return queries.list(filter, { limit: rowsOf(page.limit, limits.pageRows), cursor: page.cursor ?? null }, call)
    },
    count: (filter = {}) => queries.count(filter, call),
    lapsed: async ({ limit } = {}) => (await queries.lapsed(0, rowsOf(limit, LAPSED_ROWS), call)).rows,
    async busiest({ since, limit } = {}) {
      refuseInsideTransaction('busiest')
      await context.tally.flush()
      return queries.busiest(since ?? (await clock.now(call)) - HOUR, rowsOf(limit, BUSIEST_ROWS), call)
    },
    async resolve(identity, ending, options = {}) {
      refuseInsideTransaction('resolve')
      checkIdentity(identity)
      const { by = ANONYMOUS, ifFence = null } = options
      const id = recordIdOf(identity)
      const to = resolutionOf(identity, ending)
      const { decision } = await context.requests.apply({ kind: 'resolve', id, by, ifFence, probeFence: null, to })
      settle(identity, decision)
      context.cache.drop([id])
      context.events.emit({ kind: 'resolved', identity, by })
    },
    async erase(id) {
      refuseInsideTransaction('erase')
      for (let tries = 1; ; tries++) {
        const { records } = await context.store.claims.read([id], call)
        const before = records[0] ?? null
        if (before === null) return 'gone'
        if (before.state === 'in_progress') return 'running'
        const after = emptied(before)
        if (after === null) return 'empty'
        const { decision } = await context.requests.apply({ kind: 'replace', id, before, after })
        if (decision.kind === 'replaced') {
          context.cache.drop([id])
          return 'erased'
        }
        if (tries >= ERASE_TRIES) throw new OnceError('fence_moved', 'The record kept changing while it was erased.')
      }
    },
    release: (identity, options = {}) => forget(identity, options, true),
    forget: (identity, options = {}) => forget(identity, options, false),
  }
}

/** The same record without a word about its command; null where there is none. */
function emptied(record: LedgerRecord): LedgerRecord | null {
  const { facts, ...rest } = record
  const bare = { ...rest, pointer: null, history: record.history.map(({ note: _note, ...entry }) => entry) }
  const noted = facts !== undefined || record.pointer !== null || record.history.some(({ note }) => note !== undefined)
  if (bare.state === 'unknown')
    return noted || bare.reason !== null ? ({ ...bare, reason: null } as LedgerRecord) : null
  if (!('outcome' in bare)) return noted ? (bare as LedgerRecord) : null
  if (!noted && bare.outcome.data === null) return null
  const kept = bare.state === 'succeeded' ? 'not_stored' : 'outcome'
  return { ...bare, outcome: { kept, data: null } } as LedgerRecord
}

function rowsOf(asked: number | undefined, usual: number): number {
  if (asked === undefined) return usual
  if (Number.isSafeInteger(asked) && asked >= 1) return Math.min(asked, limits.pageRows)
  const text = `A limit is a whole number from 1 to ${limits.pageRows}, not ${String(asked)}.`
  throw new OnceError('bad_option', text, { details: { option: 'limit' } })
}

/** An operator's tool may not know the operation's code; the plain value is kept then. */
function packResolved(op: Declared | undefined, value: unknown): Pick<Packed, 'outcome' | 'pointer'> {
  if (op !== undefined) return packValue(op, { value })
  const encoded = encodeValue(value)
  if ('problem' in encoded) throw new OnceError('bad_input', `The value cannot be stored: ${encoded.problem}.`)
  if (encoded.text.length > defaults.outcomeBytes) throw new OnceError('bad_input', 'The value is too large.')
  return { outcome: { kept: 'response', data: encoded.text }, pointer: null }
}
