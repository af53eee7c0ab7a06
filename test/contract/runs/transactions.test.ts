import assert from 'node:assert/strict'
import type { SqlStore } from 'onceonly'
import { createLedger, final, isOnceError } from 'onceonly'
import { defineRun } from 'onceonly/run'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const parts = { tenant: 'acme', caller: 'ann', key: 'order-1' }

/** A ledger and an engine on one store, with a table of the application beside them. */
async function opened(world: RunWorld) {
  const store: SqlStore = world.store()
  await store.sql.query('create table orders (id text not null)')
  const once = createLedger({ store })
  const order = once.operation({ name: 'order.place', effect: 'transaction' })
  const orders = async () =>
    (await store.sql.query<{ id: string }>('select id from orders order by id')).map(({ id }) => id)
  return { store, once, order, orders }
}

for (const fails of [false, true]) {
  onEveryRunStore(
    `an operation inside a transactional step ${fails ? 'is undone' : 'commits'} with it`,
    async (world) => {
      const { store, once, order, orders } = await opened(world)
      const run = defineRun('order', (context) =>
        context.step('place', { semantics: 'transactional' }, async ({ tx }) => {
          await tx.query('insert into orders (id) values (?)', ['outer'])
          const placed = await order.run(parts, null, async (inner) => {
            await inner.tx.query('insert into orders (id) values (?)', ['inner'])
            return 'placed'
          })
          if (fails) throw final(new Error('out of stock'))
          return placed
        }),
      )
      const engine = await world.engine({ runs: [run] }, () => store)
      const handle = await engine.start(run, { runId: 'r', input: null })
      if (fails) await assert.rejects(handle.result({ waitMs: 120_000 }), (error) => isOnceError(error, 'run_failed'))
      else assert.equal(await handle.result({ waitMs: 120_000 }), 'placed')
      assert.deepEqual(await orders(), fails ? [] : ['inner', 'outer'])
      // Afterwards the operation is outside of it: it runs when it was undone, and is replayed when it was not.
      const again = await order.execute(parts, null, async () => 'again')
      assert.equal(again.kind, fails ? 'executed' : 'replayed')
      await once.stop()
    },
  )
}

onEveryRunStore('an operation that needs a lease is refused inside a transactional step', async (world) => {
  const { store, once } = await opened(world)
  const charge = once.operation({ name: 'charge', effect: 'external' })
  const run = defineRun('order', (context) =>
    context.step('place', { semantics: 'transactional' }, async () =>
      charge
        .run(parts, null, async () => 'charged')
        .catch((error: unknown) => (isOnceError(error) ? error.code : 'other')),
    ),
  )
  const engine = await world.engine({ runs: [run] }, () => store)
  const handle = await engine.start(run, { runId: 'r', input: null })
  assert.equal(await handle.result({ waitMs: 120_000 }), 'nested_claim')
  await once.stop()
})
