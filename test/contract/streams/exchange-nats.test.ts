import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import type { ExchangedEntry, PullAnswer, RegionHint, RoomImage } from 'onceonly/stream/ports'
import type { Exchange, StreamRegion } from 'onceonly/stream/server'
import { createMemoryRoomLog, createNatsExchange, createStreamRegion } from 'onceonly/stream/server'
import { closeCodes } from '../../../src/streams/protocol/protocol.ts'
import { enter, type RawPeer, send } from '../../../src/streams/server/test-peer.ts'
import { until } from '../../../src/testing/until.ts'
import { createProxy } from '../../../tools/proxy/index.ts'
import { startRecipes } from '../../../tools/servers/index.ts'
import { nats } from '../../../tools/servers/nats.ts'
import { startOwn } from '../../support/own-server.ts'

const natsUrl = process.env['ONCEONLY_TEST_NATS_URL']
if (natsUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_NATS_URL is not set')
const skip = natsUrl === undefined ? 'no NATS server' : false
const shared = { skip }

const RECONNECT = { maxReconnectAttempts: -1, reconnectTimeWait: 50 } as const
const ROOM = 'room'
const namespaces = new Set<string>()
/** A test that failed leaves its own open, and they would keep the process alive. */
const connections = new Set<NatsConnection>()

interface Line {
  readonly connection: NatsConnection
  readonly exchange: Exchange
  readonly errors: unknown[]
}

function newNamespace(): string {
  const namespace = `exchange-${randomBytes(6).toString('hex')}`
  namespaces.add(namespace)
  return namespace
}

/** Short, because a region that got no answer retries, and a test waits for that. */
const AGAIN_MS = 1_000
/** Where nothing is retried: longer than a busy machine takes to answer. */
const PATIENT_MS = 60_000

async function openLine(url: string, region: string, namespace: string, pullMs: number): Promise<Line> {
  const connection = await connect({ servers: url, ...RECONNECT })
  connections.add(connection)
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const exchange = await createNatsExchange({
    connection,
    jetstream: jetstream(connection),
    region,
    namespace,
    pullMs,
    onError,
  })
  return { connection, exchange, errors }
}

/** A region on a log of its own, which is gone with it. */
async function openRegion(
  url: string,
  name: string,
  peers: readonly string[],
  namespace: string,
): Promise<Line & { readonly region: StreamRegion; die(): Promise<void> }> {
  const line = await openLine(url, name, namespace, AGAIN_MS)
  const region = createStreamRegion({
    region: name,
    log: createMemoryRoomLog({ region: name, nowMs: () => performance.now() }),
    exchange: line.exchange,
    peers,
    bounds: { pullRetryCapMs: 500 },
  })
  return {
    ...line,
    region,
    async die() {
      await line.connection.close()
      await region.stop()
    },
  }
}

function textsOf({ frames }: RawPeer): readonly unknown[] {
  const entries = frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries : []))
  return entries.flatMap((entry) => (entry.kind === 'message' ? [entry.body] : []))
}

/** Looked at each time: what it was before says nothing. */
function isOver({ closed }: RawPeer): boolean {
  return closed !== null
}

function entry(n: number): ExchangedEntry {
  const identity = { client: 'ada', epoch: 1, cseq: n }
  return {
    log: 'eu.1',
    n,
    ...identity,
    seen: {},
    after: null,
    replyTo: null,
    body: { n },
    acceptedAtMs: n,
    digest: `${n}`,
  }
}

function position(n: number, room = ROOM): RegionHint {
  return { kind: 'position', region: 'eu', room, position: { 'eu.1': n }, entries: [entry(n)] }
}

async function streamOf({ connection }: Line, namespace: string) {
  const { streams } = await jetstreamManager(connection)
  const name = namespace.replaceAll('.', '_')
  return {
    messages: async () => (await streams.info(name)).state.messages,
    async last(subject: string) {
      const kept = await streams.getMessage(name, { last_by_subj: `${namespace}.${subject}` })
      return kept?.string() ?? ''
    },
  }
}

after(async () => {
  for (const connection of connections) await connection.close()
  if (natsUrl === undefined) return
  const connection = await connect({ servers: natsUrl })
  const { streams } = await jetstreamManager(connection)
  for (const namespace of namespaces) await streams.delete(namespace).catch(() => {})
  await connection.close()
})

test('an image that is larger than a message of the server arrives whole', shared, async () => {
  const namespace = newNamespace()
  const [here, there] = [
    await openLine(natsUrl as string, 'eu', namespace, PATIENT_MS),
    await openLine(natsUrl as string, 'us', namespace, PATIENT_MS),
  ]
  const client = (index: number) => `${'visitor-é'.repeat(4)}-${index}`
  const senders = (count: number): RoomImage['senders'] =>
    Array.from({ length: count }, (_, index) => ({
      client: client(index),
      epoch: 1,
      floor: index + 2,
      last: { log: 'us.1', n: index + 1 },
    }))
  let image: RoomImage = { position: { 'us.1': 30_000 }, senders: senders(30_000), published: [] }
  const answer = (): PullAnswer => ({ kind: 'expired', image })
  const serving = there.exchange.serve({
    pull: async () => answer(),
    fence: async ({ claim: { generation } }) => ({ kind: 'fenced', generation: generation + 1 }),
    hinted: () => {},
  })
  await there.connection.flush()
  const request = { room: ROOM, position: {}, all: false }
  const pull = () => here.exchange.pull('us', request)
  assert.deepEqual(await Promise.all([pull(), pull()]), [answer(), answer()])
  image = { position: { 'us.1': 1 }, senders: senders(1), published: [] }
  assert.deepEqual(await pull(), answer())

  const claim = { client: 'ada', epoch: 1, generation: 6, instance: 'i' }
  assert.deepEqual(await here.exchange.fence('us', { room: ROOM, claim }), { kind: 'fenced', generation: 7 })
  await assert.rejects(here.exchange.fence('atlantis', { room: ROOM, claim }), { code: 'broker_unavailable' })
  await serving.stop()
  for (const { connection } of [here, there]) await connection.close()
})

test(
  'of a region that is down, what it had sent out is pulled from the stream: from the position on, up to a gap',
  shared,
  async () => {
    const namespace = newNamespace()
    const [eu, us] = [
      await openLine(natsUrl as string, 'eu', namespace, PATIENT_MS),
      await openLine(natsUrl as string, 'us', namespace, PATIENT_MS),
    ]
    const [total, missing] = [600, 450]
    // By pairs in the wrong order, as from two processes, with words of strangers between.
    for (let n = 1; n <= total; n += 2) {
      for (const each of [n + 1, n]) if (each !== missing) eu.exchange.hint(position(each))
      if (n % 10 === 1) eu.connection.publish(`${namespace}.position.eu.${ROOM}`, 'nonsense')
      if (n % 50 === 1) eu.exchange.hint(position(n, 'another.room'))
    }
    const stream = await streamOf(us, namespace)
    const sent = total - 1 + total / 10 + total / 50
    await until('all are kept', async () => (await stream.messages()) === sent)
    const pull = (n: number, room = ROOM) => us.exchange.pull('eu', { room, position: { 'eu.1': n }, all: false })
    const numbers = (answer: PullAnswer) => (answer.kind === 'entries' ? answer.entries.map(({ n }) => n) : [])
    const from = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index)

    const beginning = numbers(await pull(0))
    assert.ok(beginning.length >= 200 && beginning.length <= 300, `${beginning.length} at a time`)
    assert.deepEqual(beginning, from(1, beginning.length))
    const middle = await pull(300)
    assert.deepEqual(numbers(middle), from(301, missing - 301))
    assert.ok(middle.kind === 'entries')
    assert.deepEqual([middle.entries[0], middle.position], [entry(301), { 'eu.1': missing - 1 }])
    assert.deepEqual(numbers(await pull(0, 'another.room')), [1])
    assert.deepEqual(numbers(await pull(missing)), from(missing + 1, total - missing))
    for (const nothing of [() => pull(missing - 1), () => pull(total), () => pull(0, 'unknown-region')]) {
      await assert.rejects(nothing, { code: 'broker_unavailable' })
    }
    assert.deepEqual([eu.errors, us.errors], [[], []])
    for (const { connection } of [eu, us]) await connection.close()
  },
)

test('what strangers say on the subjects of regions is passed over', shared, async () => {
  const namespace = newNamespace()
  const [eu, us] = [
    await openRegion(natsUrl as string, 'eu', ['us'], namespace),
    await openRegion(natsUrl as string, 'us', ['eu'], namespace),
  ]
  const [ada, bob] = [await enter(eu.region, 'ada'), await enter(us.region, 'bob')]
  const stranger = await connect({ servers: natsUrl as string })
  const hint = position(1)
  const claim = { client: 'bob', epoch: 1, generation: 99, instance: 'i' }
  const words: readonly unknown[] = [
    'nonsense',
    null,
    [],
    { ...hint, kind: 'surprise' },
    { ...hint, room: 'a room' },
    { ...hint, entries: [1] },
    { ...hint, entries: [{ ...entry(1), log: 'us.1' }] },
    { ...hint, entries: [{ ...entry(1), seen: { 'eu.1': -1 } }] },
    // Under the name of another region.
    { ...hint, region: 'asia' },
    { kind: 'entered', region: 'asia', room: ROOM, claim },
    { kind: 'entered', region: 'eu', room: ROOM, claim: { ...claim, generation: 'last' } },
  ]
  for (const word of words) stranger.publish(`${namespace}.position.eu.${ROOM}`, JSON.stringify(word))
  for (const asked of ['pull', 'fence']) {
    stranger.publish(`${namespace}.${asked}.us`, JSON.stringify({ room: '', position: 1, claim }))
  }
  await stranger.flush()
  await until('all were looked at', () => us.errors.length >= words.length + 2)
  ada.say(send(1, 'hello'))
  await until('a true one', () => textsOf(bob).length > 0)
  assert.deepEqual(textsOf(bob), ['hello'])
  assert.equal(bob.closed, null)
  await stranger.close()
  for (const each of [eu, us]) await each.die()
})

test('a client that enters while its region is away from NATS is announced when it is back', shared, async () => {
  const namespace = newNamespace()
  const proxy = await createProxy({ targetPort: Number(new URL(natsUrl as string).port) })
  const [eu, us] = [
    await openRegion(proxy.rewrite(natsUrl as string), 'eu', ['us'], namespace),
    await openRegion(natsUrl as string, 'us', ['eu'], namespace),
  ]
  const old = await enter(us.region, 'ada', 1)
  proxy.refuse()
  proxy.cut()
  const ada = await enter(eu.region, 'ada', 2)
  for (let cseq = 1; cseq <= 3; cseq++) {
    ada.say(send(cseq, cseq))
    await ada.next('ack')
  }
  assert.equal(isOver(old), false)
  await proxy.accept()
  await until('the old session is over', () => isOver(old))
  assert.equal(old.closed?.code, closeCodes.fenced)
  const cy = await enter(us.region, 'cy')
  await until('the missed entries are pulled', () => textsOf(cy).length === 3)
  for (const each of [eu, us]) await each.die()
  await proxy.stop()
})

test('a region dies, another was away from NATS, and NATS itself restarts: nothing acknowledged is lost', async (t) => {
  const servers = await startOwn('nats')
  const [server] = servers.started
  if (server === undefined) return t.skip('no NATS server')
  const proxy = await createProxy({ targetPort: server.port })
  const namespace = 'demo.rooms'
  const eu = await openRegion(server.url, 'eu', ['us'], namespace)
  const us = await openRegion(proxy.rewrite(server.url), 'us', ['eu'], namespace)
  const [old, cy] = [await enter(us.region, 'ada', 1), await enter(us.region, 'cy')]

  proxy.refuse()
  proxy.cut()
  const [ada, bob] = [await enter(eu.region, 'ada', 2), await enter(eu.region, 'bob')]
  ada.say(send(1, 'a question'))
  await bob.next('deliver')
  bob.say({ kind: 'send', cseq: 1, seen: { 'eu.1': 1 }, replyTo: null, body: 'an answer' })
  await ada.next('deliver')
  ada.say({ kind: 'send', cseq: 2, seen: { 'eu.1': 2 }, replyTo: null, body: 'thanks' })
  await until('all are delivered', () => textsOf(bob).length === 3)
  const stream = await streamOf(eu, namespace)
  await until('all are kept', async () => (await stream.last(`position.eu.${ROOM}`)).includes('thanks'))
  await eu.die()
  await server.halt()
  await server.revive()
  assert.deepEqual([textsOf(cy), isOver(old)], [[], false])

  await proxy.accept()
  await until('everything arrived', () => textsOf(cy).length === 3)
  assert.deepEqual(textsOf(cy), ['a question', 'an answer', 'thanks'])
  await until('the old session is over', () => isOver(old))
  assert.equal(old.closed?.code, closeCodes.fenced)
  // A region that has received nothing, and whose only peer is dead.
  const asia = await openRegion(server.url, 'asia', ['eu'], namespace)
  const dan = await enter(asia.region, 'dan')
  await until('everything is copied', () => textsOf(dan).length === 3)
  assert.deepEqual(textsOf(dan), textsOf(cy))

  for (const each of [us, asia]) await each.die()
  await proxy.stop()
  await servers.stop()
})

test('a server without JetStream is reported at once, with what to do', async (t) => {
  const variable = 'ONCEONLY_TEST_BARE_NATS_URL'
  const script: typeof nats.script = (...place) => nats.script(...place).replace(/--jetstream[^]*$/, '')
  const servers = await startRecipes([{ ...nats, variable, script }], { log: () => {} })
  const url = servers.env[variable]
  if (url === undefined) return t.skip('no NATS server')
  const connection = await connect({ servers: url })
  await assert.rejects(createNatsExchange({ connection, jetstream: jetstream(connection), region: 'eu' }), {
    code: 'broker_unavailable',
    message: /no JetStream.*--jetstream/,
  })
  await connection.close()
  await servers.stop()
})
