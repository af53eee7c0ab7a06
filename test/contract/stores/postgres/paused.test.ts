import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { createOutbox } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineRun } from 'onceonly/run'
import { createLeases } from '../../../../src/events/outbox/leases.ts'
import { createRuntime } from '../../../../src/runtime/runtime.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import { gatedPool } from '../../../support/stores/postgres/sessions.ts'
import { atEnd, freshPool, freshSchema, openStore, testPostgres } from '../../../support/stores/postgres/store.ts'

/** A process paused in the middle of a write: what it may do after it resumes. */

testPostgres('a relay counts its lease from before it asked for it', async (t) => {
  const pool = gatedPool(await freshPool(t))
  const store = postgresStore(pool, { schema: freshSchema() })
  atEnd(t, () => store.stop())
  await createOutbox({ ledger: quietLedger(store) }).prepare()
  let now = 0
  const runtime = { ...createRuntime(), monotonicMs: () => now }
  const leases = createLeases(store.sql, { runtime, relay: 'one', leaseMs: 60_000 })
  // Partitions that are taken, and the relay's own lease.
  for (const pattern of [/SET holder = \$1/, /INSERT INTO onceonly_outbox_relays/]) {
    const gate = pool.gate(pattern)
    const asked = leases.round()
    await gate.reached
    now += 60_001
    gate.open()
    await asked
    assert.deepEqual(leases.current(0), [])
    await leases.round()
    assert.ok(leases.current(0).length > 0)
  }
})

testPostgres('a worker whose lease ended while it wrote its intent does not act', async (t) => {
  const pool = gatedPool(await freshPool(t))
  const store = postgresStore(pool, { schema: freshSchema() })
  atEnd(t, () => store.stop())
  const runtime = createRuntime()
  let paused = 0
  let effects = 0
  const over = Promise.withResolvers<void>()
  const run = defineRun('remind', (context) =>
    context.step('sms', { semantics: 'once' }, () => {
      effects += 1
      over.resolve()
      return 'sent'
    }),
  )
  const engine = await createEngine({
    ledger: quietLedger(store),
    runs: [run],
    runtime: { ...runtime, monotonicMs: () => runtime.monotonicMs() + paused },
    on: ({ kind }) => {
      if (kind === 'lost') over.resolve()
    },
  })
  const gate = pool.gate(/insert into onceonly_run_steps/)
  await engine.start(run, { runId: 'r1', input: null })
  await gate.reached
  paused = 3_600_000
  gate.open()
  await over.promise
  assert.equal(effects, 0)
  await engine.stop()
})

testPostgres('a guard that was paused forgets no lock that belongs to a later send', async (t) => {
  const schema = freshSchema()
  const pool = gatedPool(await freshPool(t))
  const slow = postgresStore(pool, { schema })
  atEnd(t, () => slow.stop())
  const guards = [slow, await openStore(t, { schema })].map((store) => {
    const ledger = createLedger({ store, background: false })
    atEnd(t, () => ledger.stop())
    return createGuard<string>({
      ledger,
      name: 'mail',
      identity: (text) => ['acme', text],
      onFailed: 'allow',
      waitMs: 0,
    })
  })
  const [one, two] = guards
  assert.ok(one !== undefined && two !== undefined)
  let sends = 0
  const gate = pool.gate(/FOR UPDATE/)
  const first = one.send('hello', async (attempt) => {
    sends += 1
    await attempt?.attach({ type: 'mail', id: '1' })
    attempt?.failed()
  })
  await gate.reached
  // An operator releases the content, and it is sent again.
  await two.release({ message: 'hello' })
  const send = () =>
    two.send('hello', async (attempt) => {
      sends += 1
      await attempt?.attach({ type: 'mail', id: '2' })
    })
  await send()
  gate.open()
  await first
  assert.equal(sends, 2)
  await send()
  assert.equal(sends, 2)
})
