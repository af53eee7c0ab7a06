import type { Runtime } from '../../runtime/runtime.ts'
import type { HeldLease, HeldLeases } from './held-leases.ts'
import { createHeldLeases } from './held-leases.ts'
import type { Lease, LeaseSql } from './leases.ts'

export interface HeldRowsOptions<Key extends string, Row> {
  readonly runtime: Runtime
  readonly leases: LeaseSql<Key>
  readonly leaseMs: number
  /** Called once for a row whose lease ended before it was let go: by the holder's clock, or because it was taken. */
  ended?(row: Row, how: 'over' | 'taken'): void
  failed(error: unknown): void
  recovered?(failures: number): void
}

/** The leased rows that one process holds. Those that are due at the same time are renewed by one statement. */
export interface HeldRows<Row> extends Pick<HeldLeases<Row, true>, 'nowMs' | 'renewAll' | 'stop'> {
  /** `sentAtMs`: by `nowMs`, before the rows were asked for. */
  hold(row: Row, sentAtMs: number): HeldLease<true>
}

export function createHeldRows<Key extends string, Row extends Lease<Key>>(
  options: HeldRowsOptions<Key, Row>,
): HeldRows<Row> {
  const { runtime, leases, leaseMs, ended } = options
  const renew = together((rows: readonly Row[]) => leases.renew(rows, leaseMs))
  const held = createHeldLeases<Row, true, true>({
    runtime,
    renew: async (row) => ((await renew(row)).has(row[leases.key]) ? null : true),
    endOf: () => true,
    ended: (row, _end, loss) => ended?.(row, loss === null ? 'over' : 'taken'),
    failed: options.failed,
    recovered: (failures) => options.recovered?.(failures),
  })
  return {
    nowMs: () => held.nowMs(),
    renewAll: () => held.renewAll(),
    stop: () => held.stop(),
    hold: (row, sentAtMs) => held.hold(row, { sentAtMs, leaseMs }),
  }
}

/** Calls of one turn share one call. */
export function together<Item, Answer>(
  work: (items: readonly Item[]) => Promise<Answer>,
): (item: Item) => Promise<Answer> {
  let items: Item[] = []
  let answer: Promise<Answer> | null = null
  return (item) => {
    items.push(item)
    answer ??= Promise.resolve().then(() => {
      const given = items
      items = []
      answer = null
      return work(given)
    })
    return answer
  }
}
