import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SqlStore } from 'onceonly'
import { createLocalBus } from 'onceonly/local'
import { createOutbox, createRelay, type Relay } from 'onceonly/outbox'
import { sqliteStore } from 'onceonly/sqlite'
import { until } from '../../../../src/testing/until.ts'
import { messageOf, onInbox } from '../../../support/events/inbox/stage.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

const TRANSACTION = { timeoutMs: 20_000, lockMs: 10_000, refuseTwinOf: null }

interface Service {
  readonly relay: Relay
  say(n: number): Promise<void>
}

onInbox('messages of two services under one key are two lines', { ordered: true }, async (stage) => {
  const { inbox, events, store } = stage
  const bus = createLocalBus({ store, retryMs: 50 })
  const handled: string[] = []
  await inbox.consume<string>(bus, { topics: ['orders'] }, (body) => void handled.push(body))

  async function service(name: string, own: SqlStore): Promise<Service> {
    const outbox = createOutbox({ ledger: quietLedger(own) })
    await outbox.prepare()
    const say = (n: number) =>
      own.transactions.run(
        ({ tx }) => outbox.add(tx, { topic: 'orders', key: 'customer-1', body: `${name}${n}` }),
        TRANSACTION,
      )
    return { relay: createRelay({ ledger: quietLedger(own), publisher: bus }), say }
  }

  const folder = await mkdtemp(join(tmpdir(), 'onceonly-outboxes-'))
  const storeIn = (name: string) => sqliteStore(join(folder, name))
  const stores = [storeIn('a'), storeIn('b')] as const
  const services = [await service('a', stores[0]), await service('b', stores[1])] as const
  try {
    for (const n of [1, 2]) await services[0].say(n)
    await until('the messages of the first service are handled', () => handled.length === 2)
    for (const n of [1, 2]) await services[1].say(n)
    await until(
      'the messages of the second service are handled',
      () => ({ handled, parked: events.filter(({ kind }) => kind === 'parked') }),
      ({ parked }) => handled.length === 4 || parked.length > 0,
    )
    assert.deepEqual(handled, ['a1', 'a2', 'b1', 'b2'])
    assert.equal(await inbox.deadLetters.count(), 0)
  } finally {
    await Promise.all(services.map(({ relay }) => relay.stop()))
    await inbox.stop()
    await bus.stop()
    for (const each of stores) await each.stop()
    await rm(folder, { recursive: true })
  }
})

onInbox('numbers of senders without an outbox are one line per key', { ordered: true }, async ({ inbox }) => {
  const numbered = (id: string, sequence: number) => messageOf(id, { key: 'k', sequence })
  assert.equal((await inbox.receive(numbered('m1', 1), () => {})).kind, 'handled')
  assert.equal((await inbox.receive(numbered('m3', 3), () => {})).kind, 'waiting')
  assert.equal((await inbox.receive(numbered('m2', 2), () => {})).kind, 'handled')
})
