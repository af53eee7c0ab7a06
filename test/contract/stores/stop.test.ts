import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger, type Ledger, type SqlTx } from 'onceonly'
import { createInbox, type Subscriber } from 'onceonly/inbox'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { createEngine, defineRun } from 'onceonly/run'
import { createSaga, defineSaga, event } from 'onceonly/saga'
import { sqliteStore } from 'onceonly/sqlite'
import { until } from '../../../src/testing/until.ts'

/** `ledger.stop` ends what was made from the ledger, and closes its file: SQLite removes the log with the last connection. */

const orders = defineSaga({
  name: 'orders',
  events: { Placed: event<{ order: string }>({ correlate: ({ order }) => order }) },
  states: [],
  terminal: ['Closed'],
  oneShot: true,
  data: () => ({}),
  table: {
    initial: { Placed: { to: ['Closed'], handle: (_data, _event, { transitionTo }) => transitionTo('Closed') } },
  },
})

let subscriptions = 0
const subscriber: Subscriber = {
  name: 'desk',
  redeliveryHorizonMs: 1,
  async subscribe() {
    subscriptions++
    return { stop: async () => void subscriptions-- }
  },
}

const parts: Readonly<Record<string, (once: Ledger<SqlTx>) => unknown>> = {
  relay: (once) => createRelay({ ledger: once, publisher: { name: 'desk', publish: async () => [] } }),
  engine: (once) => createEngine({ ledger: once, runs: [defineRun('nap', (run) => run.sleep('nap', 60_000))] }),
  inbox: (once) => createInbox({ ledger: once, consumer: 'billing' }).consume(subscriber, { topics: ['a'] }, () => {}),
  saga: (once) => createSaga({ ledger: once, definition: orders }).consume(subscriber),
}

async function inFile(work: (path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-stop-'))
  try {
    await work(join(folder, 'once.db'))
  } finally {
    await rm(folder, { recursive: true })
  }
}

for (const [name, make] of Object.entries(parts)) {
  test(`a ledger that stops ends the ${name} that was made from it, and closes its file`, () =>
    inFile(async (path) => {
      const once = createLedger({ store: sqliteStore(path) })
      await createOutbox({ ledger: once }).prepare()
      await make(once)
      const place = once.operation({ name: 'place', effect: 'transaction' })
      await place.run({ tenant: 't', caller: 'c', key: 'k' }, null, () => 'placed')
      assert.ok(existsSync(`${path}-wal`))
      await once.stop()
      assert.equal(subscriptions, 0)
      assert.equal(existsSync(`${path}-wal`), false)
    }))
}

test('another ledger keeps using the file of one that stopped', () =>
  inFile(async (path) => {
    const store = sqliteStore(path)
    const [one, two] = [createLedger({ store }), createLedger({ store })]
    const who = { tenant: 't', caller: 'c', key: 'k' }
    const define = { name: 'mail', effect: 'external' } as const
    const end = Promise.withResolvers<string>()
    const begun = Promise.withResolvers<void>()
    const sent = two.operation(define).run(who, null, () => {
      begun.resolve()
      return end.promise
    })
    await begun.promise
    await one.stop()
    end.resolve('sent')
    assert.equal(await sent, 'sent')
    assert.equal(await two.operation({ ...define, name: 'again' }).run(who, null, () => 'sent'), 'sent')
    await two.stop()
    assert.equal(existsSync(`${path}-wal`), false)
    // Whatever is done with the file now meets no connection of ours.
    await rename(path, `${path}.moved`)
    const moved = createLedger({ store: sqliteStore(`${path}.moved`) })
    assert.equal(await moved.operation(define).run(who, null, () => assert.fail('it ran twice')), 'sent')
    await moved.stop()
  }))

test('what is deferred runs before the ledger refuses commands, and not when it was taken back', () =>
  inFile(async (path) => {
    const once = createLedger({ store: sqliteStore(path), background: false })
    const mail = once.operation({ name: 'mail', effect: 'external' })
    const who = { tenant: 't', caller: 'c', key: 'k' }
    let last: unknown = null
    once.defer(() => assert.fail('it was taken back'))()
    once.defer(async () => {
      last = await mail.run(who, null, () => 'sent')
    })
    once.defer(() => Promise.reject(new Error('this one cannot end')))
    await once.stop()
    assert.equal(last, 'sent')
    await assert.rejects(
      mail.run({ ...who, key: 'late' }, null, () => 'sent'),
      { code: 'stopped' },
    )
    await until('the file is closed', () => !existsSync(`${path}-wal`))
  }))
