import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createLedger } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { createEngine, defineRun } from 'onceonly/run'
import { atEnd, freshPool, freshSchema, openStore, testPostgres } from '../../../support/stores/postgres/store.ts'

/** An effect that looks for its tables in the schema of a tenant, where the tables of another store may stand, too. */

async function twoStores(t: TestContext) {
  const pool = await freshPool(t, { max: 20 })
  const [own, tenant] = [freshSchema(), freshSchema()]
  const open = async (schema: string) => {
    const store = await openStore(t, { schema }, pool)
    const ledger = createLedger({ store, background: false })
    createOutbox({ ledger })
    atEnd(t, () => ledger.stop())
    const place = ledger.operation<null>({ name: 'order.create', effect: 'transaction' })
    const add = (key: string, before: (query: (text: string) => Promise<unknown>) => Promise<unknown>) =>
      place.run({ tenant: 'acme', caller: 'web', key }, null, async ({ tx, outbox: emit }) => {
        await before((text) => tx.query(text))
        await emit.add({ topic: 'order', body: key })
      })
    const topics = async () => (await store.sql.query('SELECT body FROM onceonly_outbox_rows')).length
    return { store, ledger, add, topics }
  }
  const [ours, theirs] = [await open(own), await open(tenant)]
  await theirs.add('first', async () => undefined)
  await pool.query(`CREATE TABLE ${tenant}.orders (name text)`)
  return { ours, theirs, tenant, pool }
}

const moves: Readonly<Record<string, (tenant: string) => string>> = {
  'SET LOCAL': (tenant) => `SET LOCAL search_path TO ${tenant}, public`,
  'SET in lower case, over two lines': (tenant) => `set local\n  search_path = ${tenant}`,
  set_config: (tenant) => `SELECT set_config('search_path', '${tenant}', true)`,
}

for (const [how, move] of Object.entries(moves)) {
  testPostgres(`${how}: the event of an effect stays in the outbox of its own store`, async (t) => {
    const { ours, theirs, tenant, pool } = await twoStores(t)
    await ours.add('mine', async (query) => {
      await query(move(tenant))
      await query("INSERT INTO orders VALUES ('found')")
    })
    assert.deepEqual([await ours.topics(), await theirs.topics()], [1, 1])
    assert.equal((await pool.query(`SELECT FROM ${tenant}.orders`)).rows.length, 1, 'the path of the tenant holds')
  })
}

testPostgres('a transactional step is recorded in the journal of its own store', async (t) => {
  const { ours, tenant } = await twoStores(t)
  const order = defineRun('order', async (run) =>
    run.step('place', { semantics: 'transactional' }, async ({ tx }) => {
      await tx.query(`SET LOCAL search_path TO ${tenant}`)
      await tx.query("INSERT INTO orders VALUES ('by a run')")
      return 'placed'
    }),
  )
  const engine = await createEngine({ ledger: ours.ledger, runs: [order] })
  atEnd(t, () => engine.stop())
  const handle = await engine.start(order, { runId: 'r-1', input: null })
  assert.equal(await handle.result(), 'placed')
})
