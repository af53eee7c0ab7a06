import assert from 'node:assert/strict'
import { createLedger, isOnceError } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createOutbox } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineRun } from 'onceonly/run'
import { createSaga, defineSaga, event } from 'onceonly/saga'
import { createLeases } from '../../../../src/events/outbox/leases.ts'
import { createRows } from '../../../../src/events/outbox/rows.ts'
import type { Entry } from '../../../../src/runs/entry.ts'
import { createPuts } from '../../../../src/runs/puts.ts'
import { createRuntime } from '../../../../src/runtime/runtime.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import { gatedPool, untilLocked, whileHeld } from '../../../support/stores/postgres/sessions.ts'
import {
  atEnd,
  CALL,
  claimIn,
  claimOf,
  freshPool,
  freshSchema,
  kindOf,
  leaseOf,
  openStore,
  POLICY,
  settleOf,
  TRANSACTION,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** Rules that only show between two sessions: each test fails without the one that its title names. */

testPostgres('a reclaim gets a larger fence although the sequence is behind', async (t) => {
  const schema = freshSchema()
  const store = await openStore(t, { schema })
  const pool = await freshPool(t)
  const policy = { ...POLICY, onAbandoned: 'rerun' } as const
  const first = await claimIn(store, 'a', { policy, leaseMs: 1_000 })
  await store.clock.advance(60_000, CALL)
  await pool.query(`SELECT setval('${schema}.onceonly_fences', 1000)`)
  const second = await claimIn(store, 'a', { policy })
  assert.ok(second.fence > first.fence, `${second.fence} after ${first.fence}`)
})

testPostgres(
  'a duplicate replays what was committed while it waited, whatever the default isolation of the server',
  async (t) => {
    const schema = freshSchema()
    const options = { options: '-c default_transaction_isolation=serializable' }
    const [one, two] = [await freshPool(t, options), await freshPool(t, options)]
    const [a, b] = [await openStore(t, { schema }, one), await openStore(t, { schema }, two)]
    const claimed = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    const first = a.transactions.run(async ({ apply }) => {
      const lease = leaseOf(await apply(claimOf('a')))
      claimed.resolve()
      await end.promise
      await apply(settleOf(lease))
    }, TRANSACTION)
    await claimed.promise
    const second = b.transactions.run(async ({ apply }) => kindOf(await apply(claimOf('a'))), TRANSACTION)
    await untilLocked(one, 'onceonly_records')
    end.resolve()
    await first
    assert.equal(await second, 'replay_success')
  },
)

testPostgres('a scan for lapsed leases finds a claim that was committed behind a larger fence', async (t) => {
  const schema = freshSchema()
  const [a, b] = [await openStore(t, { schema }), await openStore(t, { schema })]
  let lowWater = 0
  const late = await a.transactions.run(async ({ apply }) => {
    const lease = leaseOf(await apply(claimOf('late', { leaseMs: 1_000 })))
    const other = await claimIn(b, 'early', { leaseMs: 1_000 })
    assert.ok(other.fence > lease.fence)
    // The scan comes past the fence that is not committed yet.
    const { rows, next } = await b.queries.lapsed(lowWater, 10, CALL)
    assert.deepEqual(rows, [])
    lowWater = next
    return lease
  }, TRANSACTION)
  await b.clock.advance(20_000, CALL)
  const { rows } = await b.queries.lapsed(lowWater, 10, CALL)
  assert.ok(rows.some(({ id }) => id === late.id))
})

const entry: Entry = {
  key: 'k1',
  position: 1,
  branch: '',
  stepId: 'charge',
  tick: 1,
  kind: 'step',
  state: 'succeeded',
  attempts: 1,
  dueAt: null,
  fingerprint: null,
  plan: null,
  result: '1',
  failures: [],
  values: [],
  at: 1,
  leadsTo: null,
}

testPostgres('a takeover of a run and a write to its journal wait for each other', async (t) => {
  const schema = freshSchema()
  const store = await openStore(t, { schema })
  const pool = await freshPool(t)
  const run = defineRun('charge', async () => 'done')
  const engine = await createEngine({ ledger: quietLedger(store), runs: [run] })
  await (await engine.start(run, { runId: 'r1', input: null })).result()
  await engine.stop()
  const [row] = await store.sql.query<{ fence: string }>("SELECT fence FROM onceonly_runs WHERE id = 'r1'")
  const holder = { runId: 'r1', fence: Number(row?.fence) }
  const puts = createPuts(store.sql, () => {})
  const takeOver = `UPDATE ${schema}.onceonly_runs SET fence = fence + 1 WHERE id = 'r1'`
  // The write first: the next worker loads the journal with it.
  let takingOver: Promise<unknown> = Promise.resolve()
  await store.transactions.run(async ({ tx }) => {
    assert.equal(await puts.putIn(tx, holder, entry), true)
    takingOver = pool.query(takeOver)
    await untilLocked(pool, 'SET fence = fence + 1')
  }, TRANSACTION)
  await takingOver
  // The takeover first: whatever is written under the old fence comes too late, one by one and together.
  const now = { ...holder, fence: holder.fence + 1 }
  for (const items of [[entry], [entry, { ...entry, key: 'k2' }]]) {
    const holding = { ...now }
    const { writing } = await whileHeld(pool, takeOver, async () => {
      const under = puts.putAll(items.map((each) => ({ holder: holding, entry: { ...each, result: '2' } })))
      await untilLocked(pool, 'onceonly_run_steps')
      return { writing: under }
    })
    assert.deepEqual(
      await writing,
      items.map(() => false),
    )
    now.fence += 1
  }
})

testPostgres('two relays that reach for the same partitions never hold one together', async (t) => {
  const schema = freshSchema()
  const [a, b] = [await openStore(t, { schema }), await openStore(t, { schema })]
  await createOutbox({ ledger: quietLedger(a) }).prepare()
  const settings = { runtime: { ...createRuntime(), random: () => 0 }, leaseMs: 60_000 }
  const two = createLeases(b.sql, { ...settings, relay: 'two' })
  // The first has taken its share, and has not committed when the second reaches for the same rows.
  const one = await a.transactions.run(async ({ tx }) => {
    const leases = createLeases({ ...a.sql, query: tx.query }, { ...settings, relay: 'one' })
    await leases.round()
    await two.round()
    return leases
  }, TRANSACTION)
  await two.round()
  const held = [...one.current(0), ...two.current(0)].map(({ partition }) => partition)
  assert.ok(held.length > 0)
  assert.equal(new Set(held).size, held.length)
})

testPostgres('rows are put behind a parked line only, not behind one that is tried again', async (t) => {
  const store = await openStore(t)
  const outbox = createOutbox({ ledger: quietLedger(store) })
  await outbox.prepare()
  await store.transactions.run(({ tx }) => outbox.add(tx, { topic: 'a', key: 'k', body: {}, id: 'm1' }), TRANSACTION)
  const leases = createLeases(store.sql, { runtime: createRuntime(), relay: 'one', leaseMs: 60_000 })
  await leases.round()
  const tenures = leases.current(0)
  const rows = createRows(store)
  const { rows: found } = await rows.next(tenures.map(({ partition }) => ({ partition, rows: 10 })))
  const [row] = found
  assert.ok(row !== undefined)
  // Redriven and refused again since the relay looked: the line is failing, but not parked.
  await store.sql.query(
    `INSERT INTO onceonly_outbox_failing (line, partition, parked, attempts, due_at, reason) VALUES (?, ?, 0, 1, 0, '')`,
    [row.line, row.partition],
  )
  assert.deepEqual(await rows.hold(tenures, [row]), [])
  await store.sql.query('UPDATE onceonly_outbox_failing SET parked = 1')
  assert.equal((await rows.hold(tenures, [row])).length, 1)
})

testPostgres('a redrive forgets no record that another one has settled meanwhile', async (t) => {
  const schema = freshSchema()
  const pool = await freshPool(t)
  const gated = gatedPool(await freshPool(t))
  const slow = postgresStore(gated, { schema })
  atEnd(t, () => slow.stop())
  const quick = await openStore(t, { schema }, pool)
  const inboxes = [slow, quick].map((store) => {
    const ledger = createLedger({ store, background: false })
    const inbox = createInbox({ ledger, consumer: 'billing', maxFailures: 1 })
    atEnd(t, async () => {
      await inbox.stop()
      await ledger.stop()
    })
    return inbox
  })
  const [one, two] = inboxes
  assert.ok(one !== undefined && two !== undefined)
  const message = { id: 'm1', topic: 'a', key: null, sequence: null, body: '{}', headers: {}, deliveries: 1 }
  const parked = await two.receive(message, () => Promise.reject(new Error('down')))
  assert.equal(parked.kind, 'parked')
  let effects = 0
  const effect = async () => {
    effects += 1
  }
  // Between the look at the record and its removal.
  const gate = gated.gate(/FOR UPDATE/)
  const late = one.deadLetters.redrive({}, { effect })
  await gate.reached
  const [first] = await two.deadLetters.redrive({}, { effect })
  assert.equal(first?.result.kind, 'ran')
  gate.open()
  await assert.rejects(late, (error) => isOnceError(error, 'fence_moved'))
  assert.equal(effects, 1)
})

const orders = defineSaga({
  name: 'orders',
  events: { Placed: event<{ order: string }>({ correlate: ({ order }) => order }) },
  states: ['Open'],
  terminal: ['Closed'],
  oneShot: true,
  data: () => ({}),
  table: {
    initial: { Placed: { to: ['Closed'], handle: (_data, _event, { transitionTo }) => transitionTo('Closed') } },
    Open: { Placed: { to: ['Closed'], handle: (_data, _event, { transitionTo }) => transitionTo('Closed') } },
  },
})

testPostgres('a sweep leaves a saga whose end was put off while it waited for its row', async (t) => {
  const schema = freshSchema()
  const store = await openStore(t, { schema })
  const pool = await freshPool(t)
  const ledger = quietLedger(store)
  await createOutbox({ ledger }).prepare()
  const saga = createSaga({ definition: orders, ledger })
  atEnd(t, async () => {
    await saga.stop()
    await ledger.stop()
  })
  const body = JSON.stringify({ order: 'o1' })
  await saga.handle({ id: 'm1', topic: 'Placed', key: null, sequence: null, body, headers: {}, deliveries: 1 })
  await pool.query(`UPDATE ${schema}.onceonly_saga_instances SET ends_at = 1`)
  const putOff = `UPDATE ${schema}.onceonly_saga_instances SET ends_at = 9000000000000000`
  const { sweeping } = await whileHeld(pool, putOff, async () => {
    const under = saga.upkeep.sweep()
    await untilLocked(pool, 'DELETE FROM onceonly_saga_instances')
    return { sweeping: under }
  })
  assert.equal(await sweeping, 0)
  assert.equal((await pool.query(`SELECT 1 FROM ${schema}.onceonly_saga_instances`)).rowCount, 1)
})
