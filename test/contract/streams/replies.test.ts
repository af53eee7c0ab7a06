import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isOnceError } from 'onceonly'
import type { PendingSend } from 'onceonly/stream'
import { createSqlRoomLog, createSqlStorage } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { onEverySqlStore } from '../../support/streams/stores.ts'
import { openWorld } from '../../support/streams/world.ts'

const world = await openWorld(['eu', 'us'])
after(() => world.end())

onEverySqlStore('a reply is stored with its target among its causes, or refused', async ({ store }) => {
  const log = createSqlRoomLog({ store, region: 'eu' })
  const { log: own } = await log.open('room')
  const message = { epoch: 1, generation: 1, seen: {}, replyTo: null, body: 'x', digest: 'x' }
  for (const client of ['ann', 'bob']) await log.enter('room', { ...message, client, instance: 'tab' })
  const write = async (client: string, cseq: number, target: number | null, to = 'ann') => {
    const replyTo = target === null ? null : { client: to, epoch: 1, cseq: target }
    const send = { ...message, client, cseq, replyTo }
    const { results, stored } = await log.write('room', { merged: [], sends: [send] })
    return { kind: results[0]?.kind, seen: stored[0]?.seen }
  }
  for (const cseq of [1, 2]) await write('ann', cseq, null)
  assert.deepEqual(await write('bob', 1, 1), { kind: 'accepted', seen: { [own]: 1 } })
  assert.deepEqual(await write('bob', 2, 3), { kind: 'target-unknown', seen: undefined })
  assert.deepEqual(await write('bob', 2, 1, 'cy'), { kind: 'target-unknown', seen: undefined })
  // In another room it is not the same message.
  await log.enter('another', { ...message, client: 'bob', instance: 'tab' })
  const elsewhere = { ...message, client: 'bob', cseq: 1, replyTo: { client: 'ann', epoch: 1, cseq: 1 } }
  assert.deepEqual((await log.write('another', { merged: [], sends: [elsewhere] })).results, [
    { kind: 'target-unknown' },
  ])
  // Both in one transaction.
  const pair = [3, 4].map((cseq) => ({ ...message, client: 'ann', cseq }))
  const reply = { ...message, client: 'bob', cseq: 2, replyTo: { client: 'ann', epoch: 1, cseq: 4 } }
  const { stored } = await log.write('room', { merged: [], sends: [...pair, reply] })
  assert.deepEqual(stored.at(-1)?.seen, { [own]: 5 })
  // The first is gone; the last of its sender comes after it everywhere.
  await log.trim('room', {
    olderThanMs: 60_000,
    mostEntries: 0,
    clientsMs: 60_000,
    publishedMs: 60_000,
    mostPublished: 1e6,
  })
  assert.deepEqual(await write('bob', 3, 1), { kind: 'accepted', seen: { [own]: 5 } })
})

onEverySqlStore('a storage that two clients open never mixes their messages', async ({ store, another }) => {
  const [first, second] = [store, another()].map((each) => createSqlStorage({ store: each, name: 'bot' }))
  assert.ok(first && second)
  const message = (body: string): PendingSend => ({ seen: {}, replyTo: null, body })
  await first.load()
  await first.identify({ client: 'bot', epoch: 1, generation: 1 })
  await first.save({ number: 1, message: message('of the first') })
  await second.load()
  const late = first.save({ number: 2, message: message('too late') })
  await assert.rejects(late, (error) => isOnceError(error, 'storage_taken'))
  const settled = first.settle('ann/1/1', { logs: {}, ordered: 0 }, async () => {
    await first.tx.query('create table of_the_effect (text text)')
  })
  await assert.rejects(settled, (error) => isOnceError(error, 'storage_taken'))
  await second.save({ number: 2, message: message('of the second') })
  const third = createSqlStorage({ store, name: 'bot' })
  assert.deepEqual(
    (await third.load())?.pending.map(({ message: { body } }) => body),
    ['of the first', 'of the second'],
  )
  await assert.rejects(store.sql.query('select * from of_the_effect'))
})

test('over sockets: a reply names what was received, here or in another region, and nothing else', async () => {
  const [ann, bob] = [await world.client(), await world.client({ regions: ['us'] })]
  const asked = await ann.say('question')
  await until('bob has it', () => bob.seen.length === 1)
  const stranger = { ...asked, client: 'stranger' }
  await assert.rejects(bob.say('what?', stranger), (error) => isOnceError(error, 'target_unknown'))
  const answer = await bob.say('answer', asked)
  await until('ann has it', () => ann.seen.length === 2)
  assert.deepEqual(ann.seen[1]?.replyTo, asked)
  assert.ok(Object.keys(ann.seen[1]?.seen ?? {}).some((log) => log.startsWith('eu.')))
  await ann.say('thanks', answer)
})
