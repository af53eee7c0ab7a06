import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StatementSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { createLedger } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createLocalBus } from 'onceonly/local'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { createEngine, defineRun } from 'onceonly/run'
import { createSaga, defineSaga, event } from 'onceonly/saga'
import { sqliteStore } from 'onceonly/sqlite'
import { linesOf, wakeLinesOf } from '../../../lab/idle/reasons.ts'
import { createTestRuntime } from '../../../src/runtime/test-runtime.ts'

/** Of all wings together, in a minute of the test's clock. One more poll in every second would be sixty more. */
const STATEMENTS_MOST = 130
const MINUTES = 4
const MINUTE = 60_000

/** Every statement that the driver gets from now on, by its text. */
function counted(t: TestContext): Map<string, number> {
  const statements = new Map<string, number>()
  for (const method of ['run', 'get', 'all'] as const) {
    const before = StatementSync.prototype[method] as (...args: never[]) => unknown
    t.mock.method(StatementSync.prototype, method, function count(this: StatementSync, ...args: never[]) {
      const text = this.sourceSQL.replaceAll(/\s+/g, ' ').trim()
      statements.set(text, (statements.get(text) ?? 0) + 1)
      return before.apply(this, args)
    })
  }
  return statements
}

const orders = defineSaga({
  name: 'orders',
  events: { Placed: event<{ order: string }>({ correlate: ({ order }) => order }) },
  states: ['Open'],
  terminal: ['Closed'],
  data: () => ({}),
  table: {
    initial: { Placed: { to: ['Open'], handle: (_data, _event, { transitionTo }) => transitionTo('Open') } },
    Open: { Placed: { to: ['Closed'], handle: (_data, _event, { transitionTo }) => transitionTo('Closed') } },
  },
})

test('all wings of an idle process send few statements, each for a reason that is written down', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-idle-'))
  const store = sqliteStore(join(folder, 'onceonly.db'))
  const runtime = createTestRuntime()
  const ledger = createLedger({ store, runtime })
  createOutbox({ ledger })
  ledger.operation({ name: 'order.place', effect: 'transaction' })
  const bus = createLocalBus({ store, runtime })
  const saga = createSaga({ definition: orders, ledger, runtime })
  await saga.consume(bus)
  const inbox = createInbox({ ledger, runtime, consumer: 'shipping' })
  await inbox.consume(bus, { topics: ['order.placed'] }, () => {})
  const relay = createRelay({ ledger, publisher: bus, runtime })
  const engine = await createEngine({
    ledger,
    runtime,
    runs: [defineRun('nap', (run) => run.sleep('nap', 1_000))],
  })
  t.after(async () => {
    await Promise.all([relay.stop(), engine.stop()])
    const stopping = Promise.all([saga.stop(), inbox.stop(), bus.stop(), ledger.stop()])
    await runtime.advance(MINUTE)
    await stopping
    await store.stop()
    await rm(folder, { recursive: true, force: true })
  })
  // Tables are made when they are first needed, and some loops become slower while nothing happens.
  await runtime.advance(2 * MINUTE)
  const statements = counted(t)
  await runtime.advance(MINUTES * MINUTE)
  // These follow the real clock, in which no time has passed: `watch-doze.test.ts` has their rules.
  statements.delete('PRAGMA data_version')
  const { lines, unknown } = linesOf(Object.fromEntries(statements))
  const all = lines.reduce((sum, { count }) => sum + count, 0)
  assert.deepEqual(unknown, [])
  const text = lines.map(({ what, count }) => `${count / MINUTES} ${what}`).join('\n')
  assert.ok(all / MINUTES <= STATEMENTS_MOST, `${all / MINUTES} statements a minute:\n${text}`)
  t.diagnostic(`${all / MINUTES} statements a minute:\n${text}`)
})

test('a new poll has no reason until one is written down', () => {
  for (const poll of [
    "select id from onceonly_runs where state = 'waiting'",
    'SELECT count(*) FROM onceonly_outbox_rows',
    "select id from messages where status = 'queued'",
    'delete from case_escalations where created_at < 1',
  ]) {
    assert.deepEqual(linesOf({ [poll]: 1 }).unknown, [poll])
  }
  for (const timer of ['src/ledger/cache.ts round', 'service/workspaces/counts.ts look', 'unknown']) {
    assert.deepEqual(wakeLinesOf({ [timer]: 1 }).unknown, [timer])
  }
})
