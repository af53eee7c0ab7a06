import { limits } from '../../ledger/core/limits.ts'
import type { Dialect, SqlSeam } from '../../ledger/store/sql.ts'
import { isOneOf, numbersValue } from '../../ledger/store/sql.ts'
import { createLeaseClock } from '../../runtime/lease-clock.ts'
import type { Runtime } from '../../runtime/runtime.ts'

/** A partition that is ours, under the fence of this grant of it. */
export interface Tenure {
  readonly partition: number
  readonly fence: number
}

/** Partition and fence as one number, so that a list of tenures is a list of numbers. */
export function tenureOf({ partition, fence }: Tenure): number {
  return fence * limits.outboxPartitions + partition
}

/** A condition on the table of partitions, with one place for a list of tenures. */
export function heldBy(dialect: Dialect): string {
  return isOneOf(dialect, `(fence * ${limits.outboxPartitions} + partition)`)
}

export interface Balance {
  readonly relays: number
  /** Partitions that were ours and are somebody else's now. */
  readonly lost: readonly number[]
  /** More than our share: to be given back once nothing of them is under way. */
  readonly surplus: readonly Tenure[]
  /** Whether the number of our partitions changed. */
  readonly changed: boolean
  /** Others have more than their share, or have gone: look again soon. */
  readonly hungry: boolean
}

/**
 * Which partitions this relay may publish. Leases are by the store's clock; ours are counted from before they were asked
 * for, on a clock that never jumps, so that they end for us before they end for others.
 */
export interface Leases {
  /** Those whose lease lasts at least this much longer. */
  current(leastMs: number): readonly Tenure[]
  /** Renews, counts the relays, takes what is free up to our share. */
  round(): Promise<Balance>
  /** A write under our fence did nothing: which partitions are no longer ours? Takes none. */
  check(): Promise<readonly number[]>
  giveBack(tenures: readonly Tenure[]): Promise<void>
  /** Gives everything back and leaves. */
  leave(): Promise<void>
  /** Whether adding a row shall notify us. */
  listen(tenures: readonly Tenure[], listening: boolean): Promise<void>
  /** Forgets relays that are long gone. */
  forget(): Promise<void>
}

interface Row {
  readonly partition: unknown
  readonly fence: unknown
}

export function createLeases(sql: SqlSeam, runtime: Runtime, relay: string, leaseMs: number): Leases {
  const { dialect, now } = sql
  const clockMs = createLeaseClock(runtime)
  const held = new Map<number, Tenure & { readonly untilMs: number }>()

  const presence = `INSERT INTO onceonly_outbox_relays (relay, expires_at) VALUES (?, ${now} + ?)
    ON CONFLICT (relay) DO UPDATE SET expires_at = excluded.expires_at`
  // Also what has lapsed meanwhile, if nobody took it: ownership is the fence, never the time.
  const renew = `UPDATE onceonly_outbox_partitions SET expires_at = ${now} + ? WHERE relay = ? RETURNING partition, fence`
  const count = `SELECT count(*) AS relays FROM onceonly_outbox_relays WHERE expires_at > (SELECT ${now})`
  // From a place of our own on, so that two relays do not reach for the same ones; asked again while the row is locked.
  const take = `UPDATE onceonly_outbox_partitions
    SET relay = ?, fence = fence + 1, expires_at = ${now} + ?, listening = 1
    WHERE expires_at <= ${now} AND partition IN (
      SELECT partition FROM onceonly_outbox_partitions WHERE expires_at <= (SELECT ${now})
      ORDER BY (partition + CAST(? AS integer)) % ${limits.outboxPartitions} LIMIT ?)
    RETURNING partition, fence`
  const listed = (tenures: readonly Tenure[]) => numbersValue(dialect, tenures.map(tenureOf))

  async function ask(text: string, values: readonly (string | number)[]): Promise<readonly Tenure[]> {
    const rows = await sql.query<Row>(text, values)
    return rows.map(({ partition, fence }) => ({ partition: Number(partition), fence: Number(fence) }))
  }

  function keep(tenures: readonly Tenure[], askedMs: number): void {
    for (const tenure of tenures) held.set(tenure.partition, { ...tenure, untilMs: askedMs + leaseMs })
  }

  /** Extends what is ours and drops what is not; also adopts, if asked to, what an answer that was lost had given us. */
  async function renewAll(adopt: boolean): Promise<readonly number[]> {
    const askedMs = clockMs()
    const mine = await ask(renew, [leaseMs, relay])
    const known = new Map(mine.map((tenure) => [tenure.partition, tenure.fence]))
    const lost = [...held.values()].filter(({ partition, fence }) => known.get(partition) !== fence)
    for (const { partition } of lost) held.delete(partition)
    keep(adopt ? mine : mine.filter(({ partition }) => held.has(partition)), askedMs)
    return lost.map(({ partition }) => partition)
  }

  return {
    current: (leastMs) => {
      const from = clockMs() + leastMs
      return [...held.values()].filter(({ untilMs }) => untilMs > from)
    },
    async round() {
      const before = held.size
      await sql.query(presence, [relay, leaseMs])
      const lost = await renewAll(true)
      const [row] = await sql.query<{ relays: unknown }>(count, [])
      const relays = Math.max(1, Number(row?.relays))
      const share = Math.ceil(limits.outboxPartitions / relays)
      const missing = share - held.size
      if (missing > 0) {
        const askedMs = clockMs()
        const start = Math.floor(runtime.random() * limits.outboxPartitions)
        keep(await ask(take, [relay, leaseMs, start, missing]), askedMs)
      }
      const surplus = missing < 0 ? [...held.values()].slice(share) : []
      for (const { partition } of surplus) held.delete(partition)
      const hungry = held.size < Math.floor(limits.outboxPartitions / relays)
      return { relays, lost, surplus, changed: held.size !== before, hungry }
    },
    check: () => renewAll(false),
    async giveBack(tenures) {
      if (tenures.length === 0) return
      const text = `UPDATE onceonly_outbox_partitions SET relay = NULL, expires_at = 0 WHERE ${heldBy(dialect)}`
      await sql.query(text, [listed(tenures)])
    },
    async leave() {
      held.clear()
      await sql.query('UPDATE onceonly_outbox_partitions SET relay = NULL, expires_at = 0 WHERE relay = ?', [relay])
      await sql.query('DELETE FROM onceonly_outbox_relays WHERE relay = ?', [relay])
    },
    async listen(tenures, listening) {
      const text = `UPDATE onceonly_outbox_partitions SET listening = ? WHERE ${heldBy(dialect)}`
      await sql.query(text, [listening ? 1 : 0, listed(tenures)])
    },
    async forget() {
      await sql.query(`DELETE FROM onceonly_outbox_relays WHERE expires_at <= ${now} - ?`, [leaseMs])
    },
  }
}
