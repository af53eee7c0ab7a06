import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { closeCodes, type ServerFrame } from 'onceonly/stream/protocol'
import { WebSocket } from 'ws'
import { until } from '../../../src/testing/until.ts'
import { openWorld, ROOM } from '../../support/streams/world.ts'

const world = await openWorld()
after(() => world.end())

/** A client that says whatever it likes. */
interface Raw {
  readonly socket: WebSocket
  readonly frames: ServerFrame[]
  /** The connection, or its only session. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  say(frame: unknown): void
  /** The next frame of a kind. */
  heard<K extends ServerFrame['kind']>(kind: K): Promise<Extract<ServerFrame, { kind: K }>>
}

async function connect(): Promise<Raw> {
  const socket = new WebSocket(world.url('eu'), ['onceonly.v1+json'])
  const frames: ServerFrame[] = []
  const closing = Promise.withResolvers<{ code: number; reason: string }>()
  socket.on('message', (data) => {
    const frame = JSON.parse(String(data)) as ServerFrame
    frames.push(frame)
    if (frame.kind === 'ended') closing.resolve(frame)
  })
  socket.on('close', (code, reason) => closing.resolve({ code, reason: String(reason) }))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return {
    socket,
    frames,
    closed: closing.promise,
    say: (frame) => socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    async heard(kind) {
      await until(`a ${kind}`, () => frames.some((frame) => frame.kind === kind))
      const [found] = frames.splice(
        frames.findIndex((frame) => frame.kind === kind),
        1,
      )
      return found as Extract<ServerFrame, { kind: typeof kind }>
    },
  }
}

function hello(client: string, generation = 1) {
  return { kind: 'hello', version: 1, room: ROOM, client, epoch: 1, generation, instance: 'tab' }
}

const resume = { kind: 'resume', position: {}, ordered: 0, pendingFrom: 1, acknowledged: null, previousRegion: null }

function send(cseq: number, body: unknown) {
  return { kind: 'send', cseq, seen: {}, replyTo: null, body }
}

async function entered(client: string): Promise<Raw> {
  const raw = await connect()
  raw.say(hello(client))
  await raw.heard('welcome')
  raw.say(resume)
  await raw.heard('resumed')
  return raw
}

test('the same number with another body is a fork; with the same body it is the same message', async () => {
  const ann = await entered('forker')
  ann.say(send(1, 'one'))
  const first = await ann.heard('ack')
  assert.equal(first.floor, 2)
  ann.socket.terminate()
  const again = await connect()
  again.say(hello('forker', 2))
  assert.equal((await again.heard('welcome')).floor, 2)
  again.say(resume)
  again.say(send(1, 'one'))
  assert.deepEqual((await again.heard('ack')).results, first.results)
  again.socket.terminate()
  const forked = await connect()
  forked.say(hello('forker', 3))
  forked.say(resume)
  forked.say(send(1, 'another one'))
  assert.deepEqual(await forked.heard('nack'), { kind: 'nack', cseq: 1, why: 'fork' })
  forked.socket.terminate()
})

test('bad frames end their own connection only, with a code and a reason', async () => {
  const bob = await world.client()
  await bob.say('before')
  const own = Object.keys(bob.client.position.logs)[0] ?? ''
  const cases: readonly (readonly [string, number, (raw: Raw) => void])[] = [
    ['no JSON', closeCodes.badFrame, (raw) => raw.say('{"kind":"hello"')],
    ['no object', closeCodes.badFrame, (raw) => raw.say('[]')],
    ['unknown', closeCodes.badFrame, (raw) => raw.say({ kind: 'shout' })],
    ['binary', closeCodes.badFrame, (raw) => raw.socket.send(Buffer.from([1, 2, 3]))],
    ['too large', 1009, (raw) => raw.say({ ...hello('large'), room: 'x'.repeat(70_000) })],
    ['a send before the hello', closeCodes.badFrame, (raw) => raw.say(send(1, 'early'))],
    ['another version', closeCodes.badFrame, (raw) => raw.say({ ...hello('old'), version: 99 })],
    ['a name that is none', closeCodes.badFrame, (raw) => raw.say(hello('../etc'))],
    ['a number that jumps', closeCodes.badFrame, (raw) => enterAnd(raw, 'jumper', send(1, 'a'), send(3, 'b'))],
    ['numbers out of order', closeCodes.badFrame, (raw) => enterAnd(raw, 'mixer', send(2, 'a'), send(1, 'b'))],
    ['more taken than sent', closeCodes.badFrame, (raw) => enterAnd(raw, 'taker', { kind: 'credit', taken: 1_000 })],
    ['from the future', closeCodes.futurePosition, (raw) => fromTheFuture(raw, own)],
  ]
  for (const [what, code, act] of cases) {
    const raw = await connect()
    act(raw)
    const closed = await raw.closed
    assert.equal(closed.code, code, `${what}: ${closed.code} ${closed.reason}`)
    if (code >= 4_000) assert.notEqual(closed.reason, '', what)
  }
  assert.equal(bob.client.status, 'live')
  await bob.say('after')
  await until('bob continues', () => bob.seen.some(({ body }) => (body as { text?: string }).text === 'after'))
})

function enterAnd(raw: Raw, client: string, ...frames: readonly object[]): void {
  for (const frame of [hello(client), resume, ...frames]) raw.say(frame)
}

function fromTheFuture(raw: Raw, log: string): void {
  raw.say(hello('seer'))
  raw.say({ ...resume, position: { [log]: 1_000_000 } })
}

test('a newer connection of a client ends the older one', async () => {
  const old = await entered('twice')
  const newer = await connect()
  newer.say(hello('twice', 2))
  await newer.heard('welcome')
  assert.equal((await old.closed).code, closeCodes.fenced)
  const late = await connect()
  late.say(hello('twice', 1))
  assert.equal((await late.closed).code, closeCodes.fenced)
  newer.socket.terminate()
})

test('a refused token ends the handshake', async () => {
  const token = Buffer.from('wrong').toString('base64url')
  const socket = new WebSocket(world.url('eu'), ['onceonly.v1+json', `onceonly.token.${token}`])
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  socket.on('error', () => {}).once('unexpected-response', (_request, { statusCode }) => resolve(statusCode))
  assert.equal(await promise, 401)
  socket.terminate()
})

test('a client that stops reading costs less than 100 KB, and gets everything once it reads again', async () => {
  const lazy = await entered('lazy')
  const link = world.node('eu').links.at(-1)
  assert.ok(link)
  lazy.socket.pause()
  // So that the kernels' buffers are full, and the rest would be ours.
  const text = 'x'.repeat(32_000)
  const bob = await world.client()
  let most = 0
  const count = 400
  for (let sent = 0; sent < count; sent += 50) {
    await Promise.all(Array.from({ length: 50 }, () => bob.say(text)))
    most = Math.max(most, link.bufferedBytes)
  }
  assert.ok(most < 100 * 1_024, `${most} bytes`)
  lazy.socket.resume()
  let taken = 0
  const numbers: number[] = []
  await until('everything', () => {
    for (const frame of lazy.frames.splice(0)) {
      if (frame.kind !== 'deliver') continue
      taken += frame.entries.length
      for (const entry of frame.entries) if (entry.client === bob.client.identity.client) numbers.push(entry.cseq)
      lazy.say({ kind: 'credit', taken })
    }
    return numbers.length >= count
  })
  assert.deepEqual(
    numbers,
    Array.from({ length: count }, (_, n) => n + 1),
  )
})
