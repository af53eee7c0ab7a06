import { FOREVER, limits } from '../../ledger/core/limits.ts'
import type { LeaseSql } from '../../ledger/store/leases.ts'
import { createLeaseSql } from '../../ledger/store/leases.ts'
import { createMembers } from '../../ledger/store/members.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createLeaseClock } from '../../runtime/runtime.ts'
import { PARTITIONS, RELAYS } from './tables.ts'

/** A partition that is ours, under the fence of this grant of it. */
export interface Tenure {
  readonly partition: number
  readonly fence: number
}

/** The statements of the leases of partitions. */
export function partitionLeases(sql: SqlSeam): LeaseSql<'partition'> {
  return createLeaseSql(sql, PARTITIONS)
}

export interface Balance {
  readonly relays: number
  /** More than our share: to be given back once nothing of them is under way. */
  readonly surplus: readonly Tenure[]
  /** Whether our partitions changed since the last round. */
  readonly changed: boolean
  /** Other relays have more than their share, or have gone: look again soon. */
  readonly hungry: boolean
}

/**
 * Which partitions this relay may publish: a fair share of them, each under a fence of its own, for as long as the relay
 * keeps its own lease.
 */
export interface Leases {
  /** Its partitions, if its lease lasts at least this much longer. */
  current(leastMs: number): readonly Tenure[]
  /** Renews our lease, counts the relays, and takes what is free up to our share. */
  round(): Promise<Balance>
  /** A write under our fence did nothing: drops the partitions that are no longer ours. Takes none. */
  check(): Promise<void>
  giveBack(tenures: readonly Tenure[]): Promise<void>
  /** Gives everything back and leaves. */
  leave(): Promise<void>
  /** Whether adding a row shall notify us. */
  listen(tenures: readonly Tenure[], listening: boolean): Promise<void>
  /** Forgets relays that are long gone. */
  forget(): Promise<void>
}

export interface LeasesOptions {
  readonly runtime: Runtime
  /** Names the relay. */
  readonly relay: string
  readonly leaseMs: number
  /** Another relay has these partitions now. */
  lost?(partitions: readonly number[]): void
}

/** SQL, a condition on partitions: no relay that lives holds it. */
export function unheldSql(now: string): string {
  return `NOT EXISTS (SELECT 1 FROM ${RELAYS} AS m WHERE m.id = ${PARTITIONS.table}.holder AND m.lease_until > ${now})`
}

/** A relay has one lease, as a member. Its partitions are held for as long as that lasts. */
export function createLeases(sql: SqlSeam, options: LeasesOptions): Leases {
  const { runtime, relay, leaseMs, lost } = options
  const leases = partitionLeases(sql)
  const members = createMembers(sql, RELAYS, PARTITIONS.table)
  const held = new Map<number, Tenure>()
  let changed = false
  const nowMs = createLeaseClock(runtime)
  let endsAtMs = Number.NEGATIVE_INFINITY
  const lasts = (ms: number) => nowMs() + ms < endsAtMs
  // What this relay holds by the record alone is taken again: the answer to an earlier take was lost. Each relay begins at
  // a place of its own, so that two of them rarely want the same rows.
  const take = leases.takeText({
    endless: FOREVER,
    free: `(${unheldSql(`(SELECT ${sql.now})`)} OR (holder = ? AND NOT ${leases.held}))`,
    order: `(partition + CAST(? AS integer)) % ${limits.outboxPartitions}`,
    set: 'listening = 1',
    returning: 'partition, fence',
  })
  const tenures = () => [...held.values()]

  async function takeMissing(missing: number): Promise<void> {
    const start = Math.floor(runtime.random() * limits.outboxPartitions)
    const values = [relay, relay, leases.listed(tenures()), start, missing]
    const rows = await sql.query<{ partition: unknown; fence: unknown }>(take, values)
    if (rows.length > 0) changed = true
    for (const row of rows) {
      const tenure = { partition: Number(row.partition), fence: Number(row.fence) }
      held.set(tenure.partition, tenure)
    }
  }

  async function check(): Promise<void> {
    const text = `SELECT partition FROM ${PARTITIONS.table} WHERE ${leases.held}`
    const rows = await sql.query<{ partition: unknown }>(text, [leases.listed(tenures())])
    const left = new Set(rows.map(({ partition }) => Number(partition)))
    const gone = tenures().filter(({ partition }) => !left.has(partition))
    letGo(gone)
    if (gone.length > 0) lost?.(gone.map(({ partition }) => partition))
  }

  function letGo(given: readonly Tenure[]): void {
    if (given.length > 0) changed = true
    for (const { partition } of given) held.delete(partition)
  }

  return {
    current: (leastMs) => (lasts(leastMs) ? tenures() : []),
    async round() {
      // What another relay may have by now is taken again, under another fence.
      if (!lasts(0)) letGo(tenures())
      // The lease cannot have begun earlier at the store.
      const sentAtMs = nowMs()
      const { living: relays, held: recorded } = await members.join(relay, leaseMs)
      endsAtMs = sentAtMs + leaseMs
      // By the store's clock the lease had ended before, and others have taken something: no relay would publish what is free.
      if (held.size > 0 && recorded !== held.size) await check()
      const share = Math.ceil(limits.outboxPartitions / relays)
      const missing = share - held.size
      if (missing > 0) await takeMissing(missing)
      const surplus = missing < 0 ? tenures().slice(share) : []
      letGo(surplus)
      const hungry = held.size < Math.floor(limits.outboxPartitions / relays)
      const balance = { relays, surplus, changed, hungry }
      changed = false
      return balance
    },
    check,
    giveBack: (given) => leases.release(given),
    async leave() {
      letGo(tenures())
      await leases.releaseAll(relay)
      await members.leave(relay)
    },
    async listen(given, listening) {
      const text = `UPDATE onceonly_outbox_partitions SET listening = ? WHERE ${leases.held}`
      await sql.query(text, [listening ? 1 : 0, leases.listed(given)])
    },
    forget: () => members.removeLapsed(leaseMs),
  }
}
