import assert from 'node:assert/strict'
import { Kysely, PostgresDialect } from 'kysely'
import { createLedger } from 'onceonly'
import { kysely } from 'onceonly/kysely'
import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineRun } from 'onceonly/run'
import { createSaga, defineSaga, event, ignore } from 'onceonly/saga'
import { Pool } from 'pg'

interface Tables {
  orders: { item: string }
}

const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
await pool.query('CREATE TABLE orders (item text)')

const transactions = kysely(db)
const once = createLedger({ store: postgresStore(pool), transactions })

const order = defineRun(
  'order',
  (run, { item }: { item: string }) =>
    run.step('place', { semantics: 'transactional' }, async ({ tx }) => {
      await tx.insertInto('orders').values({ item }).execute()
      return { placed: item }
    }),
  { transactions },
)

const parcels = defineSaga({
  name: 'parcels',
  transactions,
  events: { Packed: event<{ item: string }>({ correlate: ({ item }) => item }) },
  states: ['OnItsWay'],
  terminal: [],
  data: () => ({}),
  table: {
    initial: {
      Packed: {
        to: ['OnItsWay'],
        async handle(_data, { item }, { tx, transitionTo }) {
          await tx.insertInto('orders').values({ item }).execute()
          transitionTo('OnItsWay')
        },
      },
    },
    OnItsWay: { Packed: ignore },
  },
})

const engine = await createEngine({ ledger: once, runs: [order] })
const started = await engine.start(order, { runId: 'order-1', input: { item: 'lamp' } })
assert.deepEqual(await started.result(), { placed: 'lamp' })

const saga = createSaga({ ledger: once, definition: parcels })
const fields = { headers: {}, key: null, sequence: null, deliveries: null }
const message = { id: 'm1', topic: 'Packed', body: '{"item":"chair"}', ...fields }
for (const kind of ['handled', 'duplicate']) assert.equal((await saga.handle(message)).kind, kind)

assert.deepEqual(await db.selectFrom('orders').selectAll().execute(), [{ item: 'lamp' }, { item: 'chair' }])
process.exit()
