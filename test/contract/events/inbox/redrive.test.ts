import assert from 'node:assert/strict'
import type { Receive, Subscriber } from 'onceonly/inbox'
import { messageOf, onInbox } from '../../../support/events/inbox/stage.ts'

const fail = () => {
  throw new Error('broken')
}

onInbox('a freed dead letter stays until a delivery has settled it', { maxFailures: 1 }, async (stage) => {
  const { inbox, second, write, written } = stage
  assert.equal((await inbox.receive(messageOf('m1'), fail)).kind, 'parked')
  const [freed] = await inbox.deadLetters.redrive({})
  assert.deepEqual(freed?.result, { kind: 'freed' })
  // The broker acknowledged the message long ago: the dead letter is the last copy of it.
  const { rows } = await inbox.deadLetters.list()
  assert.deepEqual(
    rows.map(({ message }) => message),
    [messageOf('m1')],
  )
  // Freeing it twice changes nothing.
  assert.deepEqual((await inbox.deadLetters.redrive({}))[0]?.result, { kind: 'freed' })
  // A delivery that fails leaves it, too.
  assert.equal((await inbox.receive(messageOf('m1'), fail)).kind, 'parked')
  assert.equal(await inbox.deadLetters.count(), 1)
  await inbox.deadLetters.redrive({})
  const other = await second()
  assert.equal((await other.receive(messageOf('m1'), (_, { tx }) => write(tx, 'm1'))).kind, 'handled')
  assert.equal(await inbox.deadLetters.count(), 0)
  assert.deepEqual(await written(), ['m1'])
})

onInbox(
  'an effect that is rolled back leaves the freed dead letter',
  { maxFailures: 3 },
  async ({ inbox, advance }) => {
    for (let deliveries = 1; deliveries <= 3; deliveries++) {
      const receipt = await inbox.receive(messageOf('m1', { deliveries }), fail)
      await advance(receipt.kind === 'later' ? receipt.delayMs : 0)
    }
    await inbox.deadLetters.redrive({})
    assert.equal((await inbox.receive(messageOf('m1'), fail)).kind, 'later')
    assert.equal(await inbox.deadLetters.count(), 1)
  },
)

onInbox('without an effect, a redrive runs the effect that consumes the topic', { maxFailures: 1 }, async (stage) => {
  const { inbox, write, written } = stage
  const receivers: Receive[] = []
  const subscriber: Subscriber = {
    name: 'test',
    redeliveryHorizonMs: 1,
    subscribe: async (_, receive) => {
      receivers.push(receive)
      return { stop: async () => {} }
    },
  }
  let broken = true
  const subscription = await inbox.consume(subscriber, { topics: ['orders'] }, async (_, { tx, message }) => {
    await write(tx, message.id)
    if (broken) throw new Error('broken')
  })
  for (const id of ['m1', 'm2']) assert.deepEqual(await receivers[0]?.(messageOf(id)), { kind: 'done' })
  assert.equal(await inbox.deadLetters.count(), 2)
  broken = false
  const [ran] = await inbox.deadLetters.redrive({ letters: ['m1'] })
  assert.deepEqual(ran?.result, { kind: 'ran', receipt: { kind: 'handled', id: 'm1' } })
  assert.deepEqual(await written(), ['m1'])
  // Once it consumes no more there is nothing to run.
  await subscription.stop()
  const [freed] = await inbox.deadLetters.redrive({ letters: ['m2'] })
  assert.deepEqual(freed?.result, { kind: 'freed' })
  assert.equal(await inbox.deadLetters.count(), 1)
})
