import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OnceError } from '../../ledger/core/errors.ts'
import { until } from '../../testing/until.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import { createMemoryOrderLog } from '../log/memory-order.ts'
import type { OrderLog, RoomLog } from '../ports.ts'
import type { ClientFrame, CloseReason } from '../protocol/protocol.ts'
import { closeCodes } from '../protocol/protocol.ts'
import { connectRaw, enter, fromStart, hello, openRegion, send } from './test-peer.ts'

test('a message is acknowledged with its place and delivered to every client, its sender too', async () => {
  const { region } = openRegion()
  const [ada, bob] = [await enter(region, 'ada'), await enter(region, 'bob')]
  ada.say(send(1, 'hi'))
  const place = { log: 'eu.1', n: 1 }
  assert.deepEqual(await ada.next('ack'), { kind: 'ack', floor: 2, ranges: [], results: [{ cseq: 1, place }] })
  for (const peer of [ada, bob]) {
    const [entry] = (await peer.next('deliver')).entries
    assert.ok(entry?.kind === 'message')
    assert.deepEqual([entry.client, entry.cseq, entry.body, entry.log, entry.n], ['ada', 1, 'hi', 'eu.1', 1])
  }
  await region.stop()
  assert.equal(bob.closed?.code, closeCodes.unavailable)
})

test('a resend is free and has the same result, also in a new session; another body under the number is a fork', async () => {
  const { region } = openRegion()
  const first = await enter(region, 'ada')
  first.say(send(1, 'hi'))
  const { results } = await first.next('ack')
  const second = await enter(region, 'ada', 2)
  assert.equal(first.closed?.code, closeCodes.fenced)
  second.say(send(1, 'hi'))
  assert.deepEqual((await second.next('ack')).results, results)
  const third = await enter(region, 'ada', 3)
  third.say(send(1, 'something else'))
  assert.deepEqual(await third.next('nack'), { kind: 'nack', cseq: 1, why: 'fork' })
  assert.equal(third.frames.filter(({ kind }) => kind === 'deliver').length, 1)
  await region.stop()
})

test('a connection that never received anything, and a quiet one, can resume', async () => {
  const { region } = openRegion()
  const quiet = connectRaw(region)
  quiet.say(hello('quiet'))
  const { position } = await quiet.next('welcome')
  assert.deepEqual(position, {})
  quiet.session.closed()
  const ada = await enter(region, 'ada')
  ada.say(send(1, 'while you were away'))
  await ada.next('ack')
  for (const generation of [2, 3]) {
    const back = connectRaw(region)
    back.say(hello('quiet', generation))
    back.say({ ...fromStart, position } as ClientFrame)
    assert.equal((await back.next('deliver')).entries.length, 1)
  }
  await region.stop()
})

test('an old generation is fenced, and the same one from elsewhere is a clone', async () => {
  const { region } = openRegion()
  await enter(region, 'ada', 5)
  const cases: readonly [ClientFrame, CloseReason][] = [
    [hello('ada', 4), 'fenced'],
    [hello('ada', 5, 'another-tab'), 'cloned'],
  ]
  for (const [frame, why] of cases) {
    const peer = connectRaw(region)
    peer.say(frame)
    assert.equal((await until(why, () => peer.closed)).code, closeCodes[why])
  }
  await region.stop()
})

test('an unknown client is not believed to have sent before', async () => {
  const { region } = openRegion()
  const peer = connectRaw(region)
  peer.say(hello('ada'))
  peer.say({ ...fromStart, pendingFrom: 7 } as ClientFrame)
  peer.say(send(7, 'the seventh'))
  const { why, floor } = await peer.next('reset')
  assert.deepEqual([why, floor], ['unknown', 1])
  assert.ok(!peer.frames.some(({ kind }) => kind === 'ack'))
  await region.stop()
})

test('a client that has seen more than the region waits alone, and gets what it waits for', async () => {
  const { region } = openRegion({ peers: ['us'] })
  const [ahead, ada] = [await enter(region, 'ahead'), await enter(region, 'ada')]
  ahead.say({ kind: 'send', cseq: 1, seen: { 'us.1': 3 }, replyTo: null, body: 'I saw more' })
  assert.deepEqual(await ahead.next('lag'), { kind: 'lag', missing: { 'us.1': 3 } })
  ada.say(send(1, 'not delayed'))
  await ada.next('ack')
  assert.ok(!ahead.frames.some(({ kind }) => kind === 'ack'))
  await region.stop()
})

test('bad frames end their own connection with a code and a reason, and affect no other', async () => {
  const { region } = openRegion({ bounds: { sendWindow: 4 } })
  const witness = await enter(region, 'witness')
  const huge = 'x'.repeat(70_000)
  const cases: readonly (readonly [string, CloseReason, readonly (ClientFrame | string)[]])[] = [
    ['no JSON', 'badFrame', ['{"kind":']],
    ['unknown', 'badFrame', ['{"kind":"surprise"}']],
    ['too large', 'tooLarge', [JSON.stringify(send(1, huge))]],
    ['no hello', 'badFrame', [fromStart]],
    ['two hellos', 'badFrame', [hello('mal', 1), hello('mal', 2)]],
    ['another version', 'badFrame', [{ ...hello('mal', 3), version: 99 } as ClientFrame]],
    ['send before resume', 'badFrame', [hello('mal', 4), send(1, 1)]],
    ['a number is skipped', 'badFrame', [hello('mal', 5), fromStart, send(2, 1)]],
    ['reordered', 'badFrame', [hello('mal', 6), fromStart, send(1, 1), send(3, 1)]],
    ['too much credit', 'badFrame', [hello('mal', 7), fromStart, { kind: 'credit', taken: 1_000_000 }]],
    ['the future', 'futurePosition', [hello('mal', 8), { ...fromStart, position: { 'eu.1': 99 } } as ClientFrame]],
    [
      'a flood',
      'flooded',
      [hello('mal', 9), ...Array.from({ length: 20 }, (): ClientFrame => ({ kind: 'credit', taken: 0 }))],
    ],
  ]
  for (const [name, why, frames] of cases) {
    const peer = connectRaw(region)
    for (const frame of frames) {
      if (typeof frame === 'string') peer.sayRaw(frame)
      else peer.say(frame)
    }
    const { code, reason } = await until(name, () => peer.closed)
    assert.deepEqual([name, code], [name, closeCodes[why]])
    assert.ok(reason.length > 0 && reason.length < 120 && !reason.includes('xxx'), reason)
  }
  witness.say(send(1, 'still here'))
  await witness.next('ack')
  assert.equal(witness.closed, null)
  assert.equal(region.sessions, 1)
  await region.stop()
})

test('a client that may not enter is refused before anything is written', async () => {
  const { region, log } = openRegion()
  const peer = connectRaw(region, {
    authorize: ({ client }) => (client === 'ada' ? null : 'this key is not yours'),
  })
  peer.say(hello('mallory'))
  const { code, reason } = await peer.next('ended')
  assert.deepEqual([code, reason], [closeCodes.notAllowed, 'this key is not yours'])
  const entered = await log.enter('room', { client: 'mallory', epoch: 1, generation: 1, instance: 'other' })
  assert.equal(entered.kind, 'entered')
  await region.stop()
})

test('a client that takes nothing is a cursor: past the bounds nothing is sent, and credit brings the rest', async () => {
  const { region } = openRegion({ bounds: { aheadEntries: 8, deliverEntries: 4, tailEntries: 4 } })
  const slow = await enter(region, 'slow')
  const ada = await enter(region, 'ada')
  const total = 40
  for (let cseq = 1; cseq <= total; cseq++) ada.say(send(cseq, cseq))
  let credit = 0
  const taken = (peer: typeof slow) =>
    peer.frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries.map(({ n }) => n) : []))
  await until('all accepted', () => ada.frames.some((frame) => frame.kind === 'ack' && frame.floor === total + 1))
  assert.equal(taken(slow).length, 8)
  slow.bufferedBytes = 10_000_000
  slow.say({ kind: 'credit', taken: 8 })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(taken(slow).length, 8, 'a connection that does not take anything gets nothing, whatever the credit')
  slow.bufferedBytes = 0
  slow.session.drained()
  while (taken(slow).length < total) {
    credit = await until('more', () => taken(slow).length > credit && taken(slow).length)
    slow.say({ kind: 'credit', taken: credit })
  }
  assert.deepEqual(
    taken(slow),
    Array.from({ length: total }, (_, index) => index + 1),
  )
  await region.stop()
})

test('a position that the log does not reach any more is reset to the head, with a snapshot taken after it', async () => {
  const { region, log } = openRegion({ snapshot: async (room) => ({ room, everything: true }) })
  const ada = await enter(region, 'ada')
  for (let cseq = 1; cseq <= 10; cseq++) ada.say(send(cseq, cseq))
  await until('all accepted', () => ada.frames.some((frame) => frame.kind === 'ack' && frame.floor === 11))
  await log.trim('room', { olderThanMs: 1e9, mostEntries: 3, clientsMs: 1e9, publishedMs: 1e9, mostPublished: 1e6 })
  const late = connectRaw(region)
  late.say(hello('late'))
  late.say(fromStart)
  const reset = await late.next('reset')
  assert.deepEqual(
    [reset.why, reset.position, reset.snapshot],
    ['expired', { 'eu.1': 10 }, { room: 'room', everything: true }],
  )
  late.say({ ...fromStart, position: reset.position } as ClientFrame)
  await late.next('resumed')
  ada.say(send(11, 'eleven'))
  assert.deepEqual(
    (await late.next('deliver')).entries.map(({ n }) => n),
    [11],
  )
  await region.stop()
})

test('a snapshot too large for a frame is reported as a problem, and the client gets what the log still has', async () => {
  const problems: unknown[] = []
  const { region, log } = openRegion({
    snapshot: async () => 'x'.repeat(200),
    onProblem: (error) => void problems.push(error),
    bounds: { snapshotBytes: 100 },
  })
  const ada = await enter(region, 'ada')
  for (let cseq = 1; cseq <= 10; cseq++) ada.say(send(cseq, cseq))
  await until('all accepted', () => ada.frames.some((frame) => frame.kind === 'ack' && frame.floor === 11))
  await log.trim('room', { olderThanMs: 1e9, mostEntries: 3, clientsMs: 1e9, publishedMs: 1e9, mostPublished: 1e6 })
  const late = connectRaw(region)
  late.say(hello('late'))
  late.say(fromStart)
  const { position, snapshot } = await late.next('reset')
  assert.deepEqual([position, snapshot], [{ 'eu.1': 7 }, null])
  assert.match(String(problems), /snapshot of room takes 202 bytes; 100 are the most/)
  await region.stop()
})

test('in another process of its region a client resumes although that one has not read so far; it reads first', async () => {
  const memory = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const here = openRegion({ log: memory }).region
  let away = false
  // A process that gets no notifications and does not poll.
  const read: RoomLog['read'] = async (room, after, bound) => {
    if (away) throw new OnceError('store_unavailable', 'The store is away.')
    return memory.read(room, after, bound)
  }
  const deaf = openRegion({
    log: { ...memory, read, listen: () => ({ stop() {} }) },
    bounds: { pullEveryMs: 3_600_000 },
  }).region
  await enter(deaf, 'witness')
  const ada = await enter(here, 'ada')
  for (const cseq of [1, 2, 3]) ada.say(send(cseq, cseq))
  await until('all accepted', () => ada.frames.some((frame) => frame.kind === 'ack' && frame.floor === 4))
  const resume = (generation: number, n: number) => {
    const peer = connectRaw(deaf)
    peer.say(hello('ada', generation))
    peer.say({ ...fromStart, position: { 'eu.1': n }, pendingFrom: 4 } as ClientFrame)
    return peer
  }

  away = true
  const early = resume(2, 2)
  assert.equal((await until('the log is away', () => early.closed)).code, closeCodes.unavailable)
  away = false
  const back = resume(3, 2)
  assert.deepEqual((await back.next('resumed')).position, { 'eu.1': 2 })
  back.say(send(4, 4))
  await back.next('ack')
  const delivered = () =>
    back.frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries.map(({ n }) => n) : []))
  await until('the rest', () => delivered().length >= 2)
  assert.deepEqual(delivered(), [3, 4])
  const liar = resume(4, 5)
  assert.equal((await until('an unwritten position', () => liar.closed)).code, closeCodes.futurePosition)
  await Promise.all([here.stop(), deaf.stop()])
})

test('a client that is silent for too long is disconnected', async () => {
  const { region } = openRegion({ bounds: { silenceMs: 200, helloMs: 20 } })
  const enteredMs = performance.now()
  const [mute, once] = [connectRaw(region), await enter(region, 'once')]
  assert.equal((await until('no hello', () => mute.closed)).code, closeCodes.silent)
  assert.equal((await until('silence', () => once.closed)).code, closeCodes.silent)
  assert.ok(performance.now() - enteredMs > 150, 'the time for a hello is not the time for everything')
  assert.equal(region.sessions, 0)
  await region.stop()
})

test('what a session sends and cannot be accepted yet is bounded in bytes; what was answered makes room', async () => {
  const { region } = openRegion({ peers: ['us'], bounds: { sendBytes: 100_000 } })
  const long = 'x'.repeat(40_000)
  const early = (cseq: number): ClientFrame => ({ kind: 'send', cseq, seen: { 'us.1': 3 }, replyTo: null, body: long })
  const [ahead, ada] = [await enter(region, 'ahead'), await enter(region, 'ada')]
  for (const cseq of [1, 2]) ahead.say(early(cseq))
  await ahead.next('lag')
  for (let cseq = 1; cseq <= 8; cseq++) {
    ada.say(send(cseq, long))
    assert.equal((await ada.next('ack')).floor, cseq + 1)
  }
  assert.equal(ahead.closed, null)
  ahead.say(early(3))
  assert.equal((await until('too much', () => ahead.closed)).code, closeCodes.flooded)
  // Also while the session is busy with something else, and has looked at none of it.
  const hasty = connectRaw(region)
  for (const frame of [hello('hasty'), fromStart, send(1, long), send(2, long), send(3, long)]) hasty.say(frame)
  assert.equal((await until('too much at once', () => hasty.closed)).code, closeCodes.flooded)
  assert.equal(ada.closed, null)
  await region.stop()
})

test('what waits for a commit is bounded in bytes: a message over the bound is refused, and its resend is taken later', async () => {
  const memory = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const { promise: healed, resolve: heal } = Promise.withResolvers<void>()
  const log: RoomLog = {
    ...memory,
    async write(room, batch) {
      await healed
      return memory.write(room, batch)
    },
  }
  const { region } = openRegion({ log, bounds: { writeQueueBytes: 50_000 } })
  const [ada, bob] = [await enter(region, 'ada'), await enter(region, 'bob')]
  const long = 'x'.repeat(60_000)
  ada.say(send(1, long))
  bob.say(send(1, 'on top'))
  assert.equal((await until('it is full', () => bob.closed)).code, closeCodes.unavailable)
  heal()
  await ada.next('ack')
  const again = await enter(region, 'bob', 2)
  again.say(send(1, 'on top'))
  assert.equal((await again.next('ack')).floor, 2)
  await region.stop()
})

test('sends that arrive in one piece share one write, and one acknowledgement', async () => {
  const memory = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const writes: number[] = []
  const log: RoomLog = {
    ...memory,
    write(room, batch) {
      writes.push(batch.sends.length)
      return memory.write(room, batch)
    },
  }
  const { region } = openRegion({ log })
  const ada = await enter(region, 'ada')
  for (let cseq = 1; cseq <= 64; cseq++) ada.say(send(cseq, `message ${cseq}`))
  assert.equal((await ada.next('ack')).floor, 65)
  assert.deepEqual(writes, [64])
  await region.stop()
})

test('a client that resumes again while the log is being read for the first time gets everything', async () => {
  const log = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const before = openRegion({ log }).region
  const ada = await enter(before, 'ada')
  ada.say(send(1, 'hi'))
  await ada.next('ack')
  await before.stop()

  const reads: (() => void)[] = []
  const held: RoomLog = {
    ...log,
    read: async (...asked) => {
      await new Promise<void>((resolve) => reads.push(resolve))
      return log.read(...asked)
    },
  }
  const { region } = openRegion({ log: held })
  const bob = connectRaw(region)
  bob.say(hello('bob'))
  for (let times = 0; times < 2; times++) {
    bob.say(fromStart)
    await bob.next('resumed')
  }
  await until('the log is read for the first', () => reads.length === 1)
  reads[0]?.()
  await until('and then for the second', () => reads.length === 2)
  reads[1]?.()
  assert.equal((await bob.next('deliver')).entries.length, 1)
  await region.stop()
})

test('what a client must have sent before may arrive while the log is asked for it', async () => {
  const memory = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const first = { client: 'ada', epoch: 1, cseq: 1, seen: {}, replyTo: null, body: 'first', digest: 'first' }
  await memory.enter('room', { client: 'ada', epoch: 1, generation: 1, instance: 'i' })
  await memory.write('room', { merged: [], sends: [{ ...first, generation: 1 }] })
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  let asked = false
  const log: RoomLog = {
    ...memory,
    async sender(...of) {
      const known = await memory.sender(...of)
      asked = true
      await opened
      return known
    },
  }
  // It looks by itself only long after this test.
  const { region } = openRegion({ log, bounds: { pullEveryMs: 1e8 } })
  const ada = connectRaw(region)
  ada.say(hello('ada', 2))
  ada.say({ ...fromStart, pendingFrom: 3, acknowledged: { log: 'eu.1', n: 1 } } as ClientFrame)
  await until('the log is asked', () => asked)
  const second = { ...first, log: 'us.1', n: 1, cseq: 2, after: { log: 'eu.1', n: 1 }, acceptedAtMs: 0 }
  await memory.write('room', { merged: [second], sends: [] })
  await until('the second is here', () =>
    ada.frames.some((frame) => frame.kind === 'deliver' && frame.entries.some(({ log: name }) => name === 'us.1')),
  )
  open()
  ada.say(send(3, 'third'))
  assert.equal((await ada.next('ack')).floor, 4)
  await region.stop()
})

test('places that were removed are asked for once, and those that come later follow all the same', async () => {
  const order = createMemoryOrderLog({ nowMs: () => performance.now() })
  let reads = 0
  const counted: OrderLog = {
    ...order,
    read(...asked) {
      reads += 1
      return order.read(...asked)
    },
  }
  // A tail of one, so that a late client is served from the store.
  const { region } = openRegion({ order: counted, bounds: { tailEntries: 1, orderEveryMs: 60_000 } })
  const ada = await enter(region, 'ada')
  for (const cseq of [1, 2, 3]) {
    ada.say(send(cseq, cseq))
    await ada.next('order')
  }
  await order.trim('room', { olderThanMs: 0, mostEntries: 0 })
  const before = reads
  const bob = await enter(region, 'bob')
  // Long enough for hundreds of rounds, were it asked again and again.
  for (let rounds = 0; rounds < 100; rounds++) await new Promise(setImmediate)
  assert.ok(reads - before <= 1, `${reads - before} reads`)
  ada.say(send(4, 4))
  const { after, from, identities } = await bob.next('order')
  assert.deepEqual([after, from, identities.length], [0, 4, 1])
  await region.stop()
})
