import assert from 'node:assert/strict'
import type { SqlStore } from 'onceonly'
import { createLedger, final } from 'onceonly'
import { createAdmin } from 'onceonly/admin'
import { createInbox } from 'onceonly/inbox'
import { createLocalBus } from 'onceonly/local'
import type { OutgoingMessage } from 'onceonly/outbox'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { createEngine, defineRun } from 'onceonly/run'
import { createSaga, defineSaga, event } from 'onceonly/saga'
import { createSqlOrderLog, createSqlRoomLog } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { quietLedger } from '../quiet-ledger.ts'

/** Every wing with tables of its own, on one store. Whatever it writes carries the mark, so that a leak can be seen. */
export interface Wings {
  readonly mark: string
  /** Writes to every table there is. */
  fill(): Promise<void>
  /** Everything that the wings list, as one text. */
  seen(): Promise<string>
  /** Publishes what waits in the outbox through the local bus; returns that, and the delivered bodies. */
  relayed(): Promise<{ readonly taken: readonly OutgoingMessage[]; readonly delivered: readonly unknown[] }>
  /** How often the effects of this mark ran. */
  readonly effects: number
  stop(): Promise<void>
}

const orders = defineSaga({
  name: 'orders',
  events: { Placed: event<{ order: string }>({ correlate: ({ order }) => order }) },
  states: ['Open'],
  terminal: ['Closed'],
  oneShot: true,
  data: () => ({ order: '' }),
  table: {
    initial: {
      Placed: {
        to: ['Open'],
        handle(data, { order }, { transitionTo }) {
          data.order = order
          transitionTo('Open')
        },
      },
    },
    Open: { Placed: { to: ['Closed'], handle: (_data, _event, { transitionTo }) => transitionTo('Closed') } },
  },
})

export async function createWings(store: SqlStore, mark: string): Promise<Wings> {
  let effects = 0
  const ledger = createLedger({ store, background: false })
  const outbox = createOutbox({ ledger })
  await outbox.prepare()
  const inbox = createInbox({ ledger, consumer: 'billing', maxFailures: 1 })
  const saga = createSaga({ definition: orders, ledger })
  const charge = defineRun('charge', (run, input: { what: string }) =>
    run.step('charge', () => {
      effects += 1
      return `charged ${input.what}`
    }),
  )
  const engine = await createEngine({ ledger: quietLedger(store), runs: [charge], pollMs: 20 })
  const admin = createAdmin({ store, ledger })
  const log = createSqlRoomLog({ store, region: 'eu' })
  const order = createSqlOrderLog({ store })
  const bus = createLocalBus({ store })
  const shipping = createInbox({ ledger, consumer: 'shipping' })
  const delivered: unknown[] = []
  await shipping.consume(bus, { topics: ['order.placed'] }, (body) => void delivered.push(body))
  const send = ledger.operation<string>({ name: 'mail.send', effect: 'external' })
  const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
  const held = ledger.operation<string>({ name: 'mail.hold', effect: 'external' })
  // The same keys in every place, so that whatever is shared is found.
  const who = { tenant: 'acme', caller: 'shop', key: 'k1' }
  const message = (id: string, topic: string, body: unknown) => {
    return { id, topic, key: null, sequence: null, body: JSON.stringify(body), headers: {}, deliveries: 1 }
  }

  async function fillLedger(): Promise<void> {
    const value = async () => {
      effects += 1
      return mark
    }
    assert.equal(await send.run(who, mark, value), mark)
    assert.equal(await send.run(who, mark, value), mark)
    const placed = await place.run(who, mark, async ({ outbox: sends }) => {
      effects += 1
      await sends.add({ topic: 'order.placed', key: 'line', body: { mark } })
      return mark
    })
    assert.equal(placed, mark)
    await assert.rejects(held.run(who, mark, () => Promise.reject(new Error(mark))))
    await assert.rejects(
      held.run({ ...who, key: 'k2' }, mark, () => {
        throw final(new Error(mark))
      }),
    )
    const claimed = await ledger.unique('acme', 'order.number', 'one', { owner: mark })
    assert.equal(claimed.kind, 'claimed')
  }

  async function fillEvents(): Promise<void> {
    const handled = await inbox.receive(message('m1', 'order.placed', { mark }), async () => {
      effects += 1
    })
    assert.equal(handled.kind, 'handled')
    const parked = await inbox.receive(message('m2', 'order.placed', { mark }), async () => {
      throw new Error(mark)
    })
    assert.equal(parked.kind, 'parked')
    const receipt = await saga.handle(message('m3', 'Placed', { order: 'o1', mark }))
    assert.equal(receipt.kind, 'handled')
  }

  return {
    mark,
    get effects() {
      return effects
    },
    async fill() {
      await fillLedger()
      await fillEvents()
      const run = await engine.start(charge, { runId: 'run-1', input: { what: mark } })
      assert.equal(await run.result(), `charged ${mark}`)
      const { log: own } = await log.open('lobby')
      assert.equal(
        (await log.enter('lobby', { client: 'ann', epoch: 1, generation: 1, instance: mark })).kind,
        'entered',
      )
      const request = {
        client: 'ann',
        epoch: 1,
        cseq: 1,
        generation: 1,
        seen: {},
        replyTo: null,
        body: mark,
        digest: mark,
      }
      const { results } = await log.write('lobby', { merged: [], sends: [request] })
      assert.equal(results[0]?.kind, 'accepted', own)
      const claim = await order.claim('lobby', mark, 60_000)
      assert.equal(claim.kind, 'held')
      await admin.act({ by: mark, via: 'test' }, 'look', { mark }, async () => undefined)
    },
    async seen() {
      const runs = await engine.list({})
      const all = [
        await admin.records({}),
        await admin.unknowns(),
        await inbox.deadLetters.list({}),
        await saga.get('o1'),
        runs,
        await Promise.all(runs.runs.map(({ runId }) => engine.get(runId))),
        await log.read('lobby', 0, { entries: 100, bytes: 1_000_000 }),
        await admin.streams?.rooms(),
        await admin.audit?.list({}),
      ]
      return JSON.stringify(all)
    },
    async relayed() {
      const taken: OutgoingMessage[] = []
      const relay = createRelay({
        ledger: quietLedger(store),
        publisher: {
          name: 'desk',
          publish(messages, call) {
            taken.push(...messages)
            return bus.publish(messages, call)
          },
        },
      })
      await until('nothing waits in the outbox', async () => (await outbox.status()).pending === 0)
      await until('every message was delivered', () => delivered.length >= taken.length)
      await relay.stop()
      return { taken, delivered }
    },
    async stop() {
      await engine.stop()
      await saga.stop()
      await inbox.stop()
      await shipping.stop()
      await bus.stop()
      await ledger.stop()
    },
  }
}
