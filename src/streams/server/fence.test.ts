import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { createLocalExchange } from '../exchange/local.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import type { Exchange, FenceRequest } from '../ports.ts'
import type { ClientFrame } from '../protocol/protocol.ts'
import { closeCodes } from '../protocol/protocol.ts'
import type { RawPeer } from './test-peer.ts'
import { connectRaw, enter, fromStart, hello, openRegion, send } from './test-peer.ts'

/** Longer than any test. */
const LONG_MS = 60_000

/** Two regions that hear no hints, so that only what is asked can fence. */
function openTwo(
  fenceMs: number,
  ask: (asked: FenceRequest, answer: () => ReturnType<Exchange['fence']>) => ReturnType<Exchange['fence']>,
) {
  const local = createLocalExchange()
  const asked: string[] = []
  const open = (region: string, peer: string) => {
    const exchange: Exchange = {
      ...local.of(region),
      hint() {},
      fence(to, request) {
        asked.push(to)
        return ask(request, () => local.of(region).fence(to, request))
      },
    }
    const log = createMemoryRoomLog({ region, nowMs: () => performance.now() })
    return openRegion({ region, log, exchange, peers: [peer], bounds: { fenceMs } })
  }
  return { eu: open('eu', 'us'), us: open('us', 'eu'), asked }
}

function comesFrom(previousRegion: string): ClientFrame {
  return { ...fromStart, previousRegion } as ClientFrame
}

function kinds({ frames }: RawPeer): readonly string[] {
  return frames.map(({ kind }) => kind)
}

test('a client that moved is resumed when the region that it came from takes nothing more of its old session', async () => {
  const gate = Promise.withResolvers<void>()
  const { eu, us, asked } = openTwo(LONG_MS, async (_, answer) => {
    await gate.promise
    return answer()
  })
  const old = await enter(eu.region, 'ada', 1)
  const moved = connectRaw(us.region)
  moved.say(hello('ada', 2))
  moved.say(comesFrom('eu'))
  await until('eu is asked', () => asked.length === 1)
  old.say(send(1, 'still mine'))
  await old.next('ack')
  assert.deepEqual(kinds(moved), ['welcome'])
  gate.resolve()
  await moved.next('resumed')
  assert.equal(old.closed?.code, closeCodes.fenced)
  const late = { client: 'ada', epoch: 1, cseq: 2, generation: 1, seen: {}, replyTo: null, body: 2, digest: '2' }
  assert.deepEqual((await eu.log.write('room', { merged: [], sends: [late] })).results, [{ kind: 'fenced' }])
  // Once in a session, however often it resumes.
  moved.say(comesFrom('eu'))
  await moved.next('resumed')
  assert.deepEqual(asked, ['eu'])
  await Promise.all([eu.region.stop(), us.region.stop()])
})

test('a region that is away locks no client out, and an unknown one is not called', async () => {
  const silence = new Promise<never>(() => {})
  const problems = [() => silence, () => Promise.reject(new Error('away'))]
  for (const [generation, problem] of problems.entries()) {
    const { eu, us, asked } = openTwo(50, problem)
    const peer = connectRaw(us.region)
    peer.say(hello('ada', generation + 1))
    peer.say(comesFrom('eu'))
    await peer.next('resumed')
    for (const name of ['us', 'atlantis']) {
      const stranger = connectRaw(us.region)
      stranger.say(hello(`from-${name}`))
      stranger.say(comesFrom(name))
      await stranger.next('resumed')
    }
    assert.deepEqual(asked, ['eu'])
    await Promise.all([eu.region.stop(), us.region.stop()])
  }
})

test('a client older than the one of the other region, or its clone, is refused and gets nothing', async () => {
  const { eu, us } = openTwo(LONG_MS, (_, answer) => answer())
  const newest = await enter(eu.region, 'ada', 7)
  for (const [generation, why] of [
    [6, 'fenced'],
    [7, 'cloned'],
  ] as const) {
    const peer = connectRaw(us.region)
    peer.say(hello('ada', generation, 'another'))
    peer.say(comesFrom('eu'))
    assert.equal((await until(why, () => peer.closed)).code, closeCodes[why])
    assert.deepEqual(kinds(peer), ['welcome', 'ended'])
  }
  assert.equal(newest.closed, null)
  await Promise.all([eu.region.stop(), us.region.stop()])
})
