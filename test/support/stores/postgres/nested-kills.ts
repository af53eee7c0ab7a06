import assert from 'node:assert/strict'
import type { Ledger, TransactionalOperation } from 'onceonly'
import { final } from 'onceonly'
import type { PostgresStore, PostgresTx } from 'onceonly/postgres'
import type { History } from './nested.ts'
import { perform, Undone } from './nested.ts'
import { CALL, claimOf } from './store.ts'

/** Random effects that are killed in the middle. Each returns the names of its rows, so that its record has them. */

export type Place = TransactionalOperation<null, PostgresTx>

export function placeOf(ledger: Ledger<PostgresTx>): Place {
  return ledger.operation<null>({ name: 'order.create', effect: 'transaction' })
}

/** Whether the caller got the success of the effect. `before` is called ahead of every step, and once at the end. */
export async function play(
  place: Place,
  key: string,
  { steps, ends }: History,
  before: (tx: PostgresTx) => Promise<void> = async () => undefined,
): Promise<boolean> {
  let names = 0
  const ended = place.run({ tenant: 'acme', caller: 'web', key }, null, async ({ tx }) => {
    const rows = await perform(
      tx,
      steps,
      () => `${key}-${++names}`,
      () => before(tx),
    )
    await before(tx)
    if (ends === 'throws') throw new Undone('undone')
    if (ends === 'final') throw final(new Undone('refused'))
    return rows
  })
  return ended.then(
    () => true,
    () => false,
  )
}

/** The table holds the rows that the records of these keys name, and no others. Returns the keys that succeeded. */
export async function assertRowsAgree(store: PostgresStore, keys: readonly string[]): Promise<Set<string>> {
  const { records } = await store.claims.read(
    keys.map((key) => claimOf(key).id),
    CALL,
  )
  const succeeded = new Set<string>()
  for (const [index, key] of keys.entries()) {
    const record = records[index] ?? null
    const recorded = record?.state === 'succeeded' ? (JSON.parse(record.outcome.data ?? '[]') as string[]) : []
    if (record?.state === 'succeeded') succeeded.add(key)
    else assert.ok(record === null || record.state === 'failed_terminal', `${key} is ${record?.state}`)
    const rows = await store.sql.query<{ name: string }>('SELECT name FROM orders WHERE name LIKE ?', [`${key}-%`])
    assert.deepEqual(rows.map(({ name }) => name).toSorted(), recorded.toSorted(), key)
  }
  return succeeded
}
