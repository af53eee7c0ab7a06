import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { until } from '../../testing/until.ts'
import { createMemoryStorage } from '../client/memory-storage.ts'
import type { ClientTransport } from '../client/ports.ts'
import { createLocalExchange } from '../exchange/local.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import type { ClientFrame, MessageIdentity } from '../protocol/protocol.ts'
import { createStreamRegion } from './region.ts'
import { connectRaw, enter, follow, fromStart, hello, openRegion, send } from './test-peer.ts'

function reply(cseq: number, replyTo: MessageIdentity, body: unknown = 'reply'): ClientFrame {
  return { kind: 'send', cseq, seen: {}, replyTo, body }
}

const nowhere: MessageIdentity = { client: 'unknown', epoch: 1, cseq: 1 }

test('a reply to what the room has never seen is refused; what came before it is acknowledged first', async () => {
  const { region } = openRegion()
  const [ada, bob] = [await enter(region, 'ada'), await enter(region, 'bob')]
  ada.say(send(1, 'question'))
  await ada.next('ack')
  for (const frame of [send(1, 'hello'), reply(2, nowhere), send(3, 'behind it')]) bob.say(frame)
  assert.deepEqual(await bob.next('nack'), { kind: 'nack', cseq: 2, why: 'target-unknown' })
  const answers = bob.frames.filter(({ kind }) => kind === 'ack' || kind === 'nack')
  assert.deepEqual(
    answers.map(({ kind }) => kind),
    ['ack', 'nack'],
  )
  assert.equal(bob.closed, null)
  // The number is still free, also for another body.
  const again = connectRaw(region)
  for (const frame of [hello('bob', 2), fromStart]) again.say(frame)
  assert.equal((await again.next('welcome')).floor, 2)
  again.say(reply(2, { client: 'ada', epoch: 1, cseq: 1 }, 'answer'))
  assert.equal((await again.next('ack')).floor, 3)
  // The next number of a known client is only a guess.
  again.say(reply(3, { client: 'ada', epoch: 1, cseq: 2 }))
  assert.equal((await again.next('nack')).why, 'target-unknown')
  await region.stop()
})

test('a reply has its target among its causes, whatever its author claims to have seen', async () => {
  const { region, log } = openRegion()
  const [ada, bob] = [await enter(region, 'ada'), await enter(region, 'bob')]
  for (const cseq of [1, 2]) ada.say(send(cseq, `question ${cseq}`))
  await until('both', () => ada.frames.some((frame) => frame.kind === 'ack' && frame.floor === 3))
  bob.say(reply(1, { client: 'ada', epoch: 1, cseq: 1 }))
  bob.say(reply(2, { client: 'bob', epoch: 1, cseq: 1 }))
  await until('all', () => bob.frames.some((frame) => frame.kind === 'ack' && frame.floor === 3))
  const seenOf = async (n: number) => (await log.read('room', n - 1, { entries: 1, bytes: 1 }))[0]?.seen
  assert.deepEqual([await seenOf(3), await seenOf(4)], [{ 'eu.1': 1 }, { 'eu.1': 3 }])
  // A target that was trimmed is covered by the last message of its sender.
  await log.trim('room', { olderThanMs: 1e9, mostEntries: 0, clientsMs: 1e9, publishedMs: 1e9, mostPublished: 1e6 })
  bob.say(reply(3, { client: 'ada', epoch: 1, cseq: 1 }))
  await until('accepted', () => bob.frames.some((frame) => frame.kind === 'ack' && frame.floor === 4))
  assert.deepEqual(await seenOf(5), { 'eu.1': 2 })
  await region.stop()
})

test('a region that has the reply first waits for its target', async () => {
  const own = createRuntime()
  // A question into the cut is given up soon, because the test waits for the next one.
  const runtime: Runtime = {
    ...own,
    setTimer: (ms, fire, background) => own.setTimer(Math.min(ms, 50), fire, background),
  }
  const cuts = new Set(['eu us', 'us eu'])
  const exchange = createLocalExchange({ way: (from, to) => ({ cut: cuts.has(`${from} ${to}`), delayMs: 0 }), runtime })
  const names = ['eu', 'us', 'ap'] as const
  const regions = names.map((region) =>
    createStreamRegion({
      region,
      log: createMemoryRoomLog({ region, nowMs: () => performance.now() }),
      exchange: exchange.of(region),
      peers: names.filter((peer) => peer !== region),
      // No region forwards entries of others, so that the reply arrives before its target.
      bounds: { pullEveryMs: 20, pullRetryCapMs: 50, detourMs: 1e9 },
    }),
  )
  const [eu, us, ap] = regions
  assert.ok(eu && us && ap)
  const [ada, bob, cy, dan] = [
    await enter(eu, 'ada'),
    await enter(ap, 'bob'),
    await enter(us, 'cy'),
    await enter(us, 'dan'),
  ]
  ada.say(send(1, 'question'))
  await bob.next('deliver')
  bob.say(reply(1, { client: 'ada', epoch: 1, cseq: 1 }, 'answer'))
  await bob.next('ack')
  // Something of the same region that has no causes comes through, so that the answer would, too.
  dan.say(send(1, 'a hint'))
  await until('ap has it', () => JSON.stringify(bob.frames).includes('a hint'))
  const texts = () => cy.frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries : [])).map(bodyOf)
  assert.deepEqual(texts(), ['a hint'])
  cuts.clear()
  await until('all', () => texts().length === 3)
  assert.deepEqual(texts(), ['a hint', 'question', 'answer'])
  for (const region of regions) await region.stop()
})

function bodyOf(entry: object): unknown {
  return 'body' in entry ? entry.body : null
}

test('a client refuses a reply to what it never received, before anything is kept', async () => {
  const { region } = openRegion()
  const [ada, bob] = [await follow(region), await follow(region)]
  const refused = (replyTo: MessageIdentity) =>
    assert.rejects(bob.client.send('reply', { replyTo }), (error) => isOnceError(error, 'target_unknown'))
  await refused(nowhere)
  const { identity } = await ada.client.send('question')
  await until('bob has it', () => bob.seen.length === 1)
  await refused({ ...identity, cseq: 2 })
  await refused({ ...bob.client.identity, cseq: 1 })
  assert.equal(bob.client.pending, 0)
  const first = await bob.client.send('answer', { replyTo: identity })
  // Its own message, before anything came back.
  const second = await bob.client.send('and more', { replyTo: first.identity })
  await second.accepted
  await until('all', () => ada.seen.length === 3)
  assert.deepEqual(
    ada.seen.map(({ replyTo }) => replyTo),
    [null, identity, first.identity],
  )
  await Promise.all([ada.client.stop(), bob.client.stop(), region.stop()])
})

test('a client that does not know the target asks the region; a refused reply affects no other message', async () => {
  const { region } = openRegion()
  const ada = await follow(region)
  await (await ada.client.send('question')).accepted
  const events: unknown[] = []
  const storage = createMemoryStorage()
  await storage.identify({ client: 'bob', epoch: 1, generation: 1 })
  await storage.advance({ logs: { 'eu.1': 1 }, ordered: 0 })
  const bob = await follow(region, {
    storage,
    onProblem: (error) => void (isOnceError(error, 'target_unknown') && events.push(error.code)),
    onDoubt: (messages) => void events.push(messages),
    onIdentity: (identity, why) => void events.push(identity, why),
  })
  const sent = [await bob.client.send('before'), await bob.client.send('reply', { replyTo: nowhere })]
  sent.push(await bob.client.send('after'))
  sent.push(await bob.client.send('after that', { replyTo: sent[2]?.identity ?? nowhere }))
  const outcomes = await Promise.allSettled(sent.map(({ accepted }) => accepted))
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  await until('all', () => ada.seen.length === 4)
  assert.deepEqual(
    ada.seen.map(({ body }) => body),
    ['question', 'before', 'after', 'after that'],
  )
  assert.deepEqual(ada.seen.at(-1)?.replyTo, { client: 'bob', epoch: 2, cseq: 1 })
  assert.deepEqual(events, ['target_unknown', { client: 'bob', epoch: 2 }, 'refused'])
  await Promise.all([ada.client.stop(), bob.client.stop(), region.stop()])
})

test('what was pending at the start of a clone is in doubt; what it says later arrives', async () => {
  const { region } = openRegion()
  const storages = [createMemoryStorage(), createMemoryStorage()]
  const silent: ClientTransport = { connect: () => ({ send() {}, close() {} }) }
  const before = await follow(region, { storage: storages[0] ?? createMemoryStorage(), transport: silent })
  for (let number = 1; number <= 10; number++) await before.client.send(`offline ${number}`)
  await before.client.stop()
  const record = await storages[0]?.load()
  assert.ok(record)
  await storages[1]?.identify(record.identity)
  for (const each of record.pending) await storages[1]?.save(each)
  const doubts: unknown[] = []
  const clones = await Promise.all(
    storages.map((storage) =>
      follow(region, {
        storage,
        onDoubt: (messages, why) => void doubts.push(why, ...messages.map(({ body }) => body)),
      }),
    ),
  )
  await until('one of them gets a message in doubt', () => doubts.length > 0)
  for (const { client } of clones) await (await client.send(`of ${client.identity.client}`)).accepted
  const witness = await follow(region)
  await until('all', () => witness.seen.length >= 12)
  const texts = witness.seen.map(({ body }) => String(body))
  const offline = Array.from({ length: 10 }, (_, index) => `offline ${index + 1}`)
  assert.deepEqual(
    texts.filter((text) => text.startsWith('offline')),
    offline,
  )
  assert.deepEqual(doubts, ['cloned', ...offline])
  assert.equal(texts.length, 12)
  await Promise.all([...clones, witness].map(({ client }) => client.stop()))
  await region.stop()
})

test('a reply keeps the identity of its target, and not the rest of the entry', async () => {
  const { region } = openRegion()
  const storage = createMemoryStorage()
  const [ada, bob] = [await follow(region), await follow(region, { storage })]
  await (await ada.client.send('x'.repeat(60_000))).accepted
  await until('bob has it', () => bob.seen.length === 1)
  const entry = bob.seen[0]
  assert.ok(entry)
  await bob.client.send('a long answer'.repeat(1_000), { replyTo: entry })
  const { client, epoch, cseq } = entry
  const kept = (await storage.load())?.pending[0]?.message.replyTo ?? { client, epoch, cseq }
  assert.deepEqual(kept, { client, epoch, cseq })
  await until('ada has the answer', () => ada.seen.length === 2)
  await Promise.all([ada.client.stop(), bob.client.stop(), region.stop()])
})
