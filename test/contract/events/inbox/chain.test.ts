import assert from 'node:assert/strict'
import { createLocalBus } from 'onceonly/local'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { until } from '../../../../src/testing/until.ts'
import { messageOf, onInbox } from '../../../support/events/inbox/stage.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

onInbox('what an effect sends leaves with its message, or not at all', {}, async ({ second, store, advance }) => {
  const outbox = createOutbox({ ledger: quietLedger(store) })
  await outbox.prepare()
  const inbox = await second({}, outbox)
  let runs = 0
  const deliver = (deliveries: number) =>
    inbox.receive(messageOf('m1', { deliveries }), async (_, { outbox: sends }) => {
      await sends.add({ topic: 'invoices', key: 'k', body: { n: 1 } })
      await sends.add({ topic: 'invoices', key: 'k', body: { n: 2 } })
      if (++runs === 1) throw new Error('after it has sent')
    })
  const waiting = async () => (await outbox.status()).pending
  const first = await deliver(1)
  assert.ok(first.kind === 'later')
  assert.equal(await waiting(), 0)
  await advance(first.delayMs)
  assert.equal((await deliver(2)).kind, 'handled')
  assert.equal(await waiting(), 2)
  assert.equal((await deliver(3)).kind, 'duplicate')
  assert.equal(await waiting(), 2)
})

onInbox(
  'a chain of consumers over outbox, relay and broker handles everything once and in order',
  {},
  async (stage) => {
    const { second, another, store } = stage
    const outbox = createOutbox({ ledger: quietLedger(store) })
    await outbox.prepare()
    const bus = createLocalBus({ store, retryMs: 50 })
    const upstream = await second({ consumer: 'orders' }, outbox)
    const downstream = another({ consumer: 'ledger', ordered: true })
    const handled = new Map<string, number[]>()
    await downstream.consume<{ account: string; n: number }>(
      bus,
      { topics: ['entry'], concurrency: 4 },
      ({ account, n }) => {
        handled.set(account, [...(handled.get(account) ?? []), n])
      },
    )
    const relay = createRelay({ ledger: quietLedger(store), publisher: bus })
    const accounts = ['a', 'b', 'c']
    const each = 8
    try {
      for (let n = 1; n <= each; n++) {
        for (const account of accounts) {
          const message = messageOf(`${account}${n}`)
          // Every message comes twice, at the same time.
          const copies = [1, 2].map(() =>
            upstream.receive(message, (_, { outbox: sends }) =>
              sends.add({ topic: 'entry', key: account, body: { account, n } }),
            ),
          )
          const kinds = (await Promise.all(copies)).map(({ kind }) => kind)
          assert.deepEqual(kinds.toSorted(), ['duplicate', 'handled'])
        }
      }
      await until(
        'everything is handled',
        () => [...handled.values()].reduce((sum, { length }) => sum + length, 0),
        (count) => count >= accounts.length * each,
      )
      const all = Array.from({ length: each }, (_, index) => index + 1)
      for (const account of accounts) assert.deepEqual(handled.get(account), all)
    } finally {
      await relay.stop()
      await downstream.stop()
      await bus.stop()
    }
  },
)
