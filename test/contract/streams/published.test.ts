import assert from 'node:assert/strict'
import type { SendRequest } from 'onceonly/stream/ports'
import { createSqlRoomLog } from 'onceonly/stream/server'
import { onEverySqlStore } from '../../support/streams/stores.ts'

const call = { timeoutMs: 60_000 }
const HOUR_MS = 3_600_000
/** Entries go at once, senders later. */
const keep = { olderThanMs: 1, mostEntries: 0, clientsMs: HOUR_MS, publishedMs: HOUR_MS, mostPublished: 3 }
const none = { kind: 'target-unknown' }

function published(id: string, text = id): SendRequest {
  const identity = { client: `pub~server~${id}`, epoch: 1, cseq: 1 }
  return { ...identity, generation: null, seen: {}, replyTo: null, body: text, digest: text }
}

onEverySqlStore(
  'a message of a server is recognised after it was removed, for as long as is promised',
  async (given) => {
    const { store } = given
    const [eu, us] = ['eu', 'us'].map((region) => createSqlRoomLog({ store, region }))
    assert.ok(eu && us)
    const say = async (...sends: SendRequest[]) => (await eu.write('room', { merged: [], sends })).results
    const { log } = await eu.open('room')
    await say(published('a'))
    await store.clock.advance(1_000, call)
    assert.equal((await eu.trim('room', keep)).removed, 1)
    const first = { kind: 'accepted', place: { log, n: 1 }, duplicate: true }
    assert.deepEqual(await say(published('a'), published('a', 'another text')), [first, { kind: 'fork' }])
    // A region that starts from an image knows it, too.
    await us.adopt('room', await eu.image('room'))
    const there = await us.write('room', { merged: [], sends: [published('a'), published('a', 'another text')] })
    assert.deepEqual(there.results, [first, { kind: 'fork' }])
    const reply = { ...published('reply'), replyTo: { client: 'pub~server~a', epoch: 1, cseq: 1 } }
    assert.equal((await say(reply))[0]?.kind, 'accepted')
    await store.clock.advance(2 * HOUR_MS, call)
    await eu.trim('room', keep)
    assert.deepEqual(await say({ ...reply, ...published('late'), replyTo: reply.replyTo }), [none])
    assert.deepEqual(await say(published('a')), [{ kind: 'accepted', place: { log, n: 3 }, duplicate: false }])
  },
)

onEverySqlStore('of messages of servers as many are known as the bound says, also in an image', async ({ store }) => {
  const log = createSqlRoomLog({ store, region: 'eu' })
  for (const id of ['a', 'b', 'c', 'd', 'e']) {
    await log.write('room', { merged: [], sends: [published(id)] })
    await store.clock.advance(1_000, call)
  }
  await log.trim('room', keep)
  const { senders, published: known } = await log.image('room')
  assert.deepEqual(
    [senders, known.map(({ client }) => client).sort()],
    [[], ['c', 'd', 'e'].map((id) => `pub~server~${id}`)],
  )
})

onEverySqlStore("another body under a client's number is noticed while the first one is kept", async ({ store }) => {
  const log = createSqlRoomLog({ store, region: 'eu' })
  await log.enter('room', { client: 'ann', epoch: 1, generation: 1, instance: 'tab' })
  const message = {
    client: 'ann',
    epoch: 1,
    cseq: 1,
    generation: 1,
    seen: {},
    replyTo: null,
    body: 'one',
    digest: 'one',
  }
  const other = { ...message, body: 'two', digest: 'two' }
  const say = async (send: typeof message) => (await log.write('room', { merged: [], sends: [send] })).results[0]
  await say(message)
  assert.deepEqual(await say(other), { kind: 'fork' })
  await store.clock.advance(1_000, call)
  await log.trim('room', keep)
  assert.deepEqual(await say(other), { kind: 'accepted', place: null, duplicate: true })
})
