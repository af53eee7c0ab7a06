import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createOutbox, createRelay, type Publisher } from 'onceonly/outbox'
import { createRoomPublisher, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { onEverySqlStore } from '../../support/streams/stores.ts'

onEverySqlStore(
  'what a transaction says in a room is shown once: whichever process relays it, however often',
  async ({ store, another }) => {
    const serving = createStreamRegion({ region: 'eu', log: createSqlRoomLog({ store, region: 'eu' }) })
    // A process without connections, which relays.
    const other = another()
    const working = createStreamRegion({ region: 'eu', log: createSqlRoomLog({ store: other, region: 'eu' }) })
    const once = createLedger({ store, background: false })
    const outbox = createOutbox({ ledger: once })
    await outbox.prepare()
    const say = once.operation<{ text: string }>({ name: 'say', effect: 'transaction' })
    const add = (text: string, fails = false) =>
      say.run({ tenant: 't', caller: 'c', key: text }, { text }, async ({ outbox: open }) => {
        await open.add(message(text))
        if (fails) throw new Error('rolled back')
      })
    await add('one')
    await assert.rejects(add('never', true), /rolled back/)
    await add('two')
    const rooms = createRoomPublisher({ region: working })
    let calls = 0
    /** The answer of the first call is lost, as by a crash between the room's commit and the outbox's. */
    const lossy: Publisher = {
      name: 'lossy',
      async publish(messages, call) {
        const answers = await rooms.publish(messages, call)
        calls += 1
        return calls > 1 ? answers : messages.map(() => ({ kind: 'unavailable', reason: 'lost' }))
      },
    }
    const relay = createRelay({ ledger: quietLedger(other), publisher: lossy, backoff: { baseMs: 10, capMs: 10 } })
    await until('all is published', async () => calls > 1 && (await outbox.status()).pending === 0)
    // Two processes of the region say the same.
    const said = await Promise.all([serving, working].map((each) => each.publish('lobby', 'three', { id: 'three' })))
    assert.deepEqual(said.filter(({ duplicate }) => duplicate).length, 1)
    assert.deepEqual(said[0]?.place, said[1]?.place)
    const log = createSqlRoomLog({ store, region: 'eu' })
    const entries = await log.read('lobby', 0, { entries: 10, bytes: 1e6 })
    assert.deepEqual(new Set(entries.map(({ body }) => body)), new Set([{ text: 'one' }, { text: 'two' }, 'three']))
    assert.equal(entries.length, 3)
    await relay.stop()
    await once.stop()
    for (const region of [serving, working]) await region.stop()
  },
)

function message(text: string) {
  return { topic: 'room.lobby', key: 'lobby', body: { text } }
}
