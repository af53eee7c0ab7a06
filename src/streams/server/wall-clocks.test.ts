import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { createLocalExchange } from '../exchange/local.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import { createMemoryOrderLog } from '../log/memory-order.ts'
import { createStreamRegion, type StreamRegion } from './region.ts'
import { enter, type RawPeer, send } from './test-peer.ts'

/** The region in which the question is asked is an hour ahead of the one in which it is answered. */
const AHEAD_MS = { eu: 3_600_000, us: 0 }
const names = ['eu', 'us'] as const

const shownTo = (peer: RawPeer) =>
  peer.frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries : [])).map(({ client }) => client)
const orderedFor = (peer: RawPeer) =>
  peer.frames.flatMap((frame) => (frame.kind === 'order' ? frame.identities : [])).map(({ client }) => client)

test('a reply from a region whose clock is an hour behind comes after its question, finally and for every client', async () => {
  const exchange = createLocalExchange()
  const places = createMemoryOrderLog({ nowMs: () => performance.now() })
  const logs = names.map((region) => createMemoryRoomLog({ region, nowMs: () => performance.now() + AHEAD_MS[region] }))
  // Places are given once both messages are there, so that the giver could put them in any order.
  let isGiven = false
  const order = {
    ...places,
    claim: async (...asked: Parameters<typeof places.claim>) =>
      isGiven ? await places.claim(...asked) : ({ kind: 'taken' } as const),
  }
  const open = (): readonly StreamRegion[] =>
    names.map((region, at) => {
      const [log] = logs.slice(at)
      assert.ok(log !== undefined)
      const peers = names.filter((peer) => peer !== region)
      return createStreamRegion({
        region,
        log,
        order,
        exchange: exchange.of(region),
        peers,
        bounds: { orderEveryMs: 20, orderLeaseMs: 1_000 },
      })
    })
  const enterAll = async (regions: readonly StreamRegion[], ...clients: readonly string[]) =>
    await Promise.all(clients.map((client, at) => enter(regions[at] as StreamRegion, client)))

  const first = open()
  const [ann, bob] = await enterAll(first, 'ann', 'bob')
  assert.ok(ann && bob)
  ann.say(send(1, 'lunch?'))
  await until('bob sees the question', () => shownTo(bob).length === 1)
  bob.say({ kind: 'send', cseq: 1, seen: { 'eu.1': 1 }, replyTo: null, body: 'yes' })
  await until('both see both', () => shownTo(ann).length === 2 && shownTo(bob).length === 2)
  isGiven = true
  await until('both have their places', () => orderedFor(ann).length === 2 && orderedFor(bob).length === 2)
  for (const region of first) await region.stop()
  // After a restart everything is read from the log.
  const second = open()
  const late = await enterAll(second, 'cy', 'dee')
  for (const peer of late)
    await until('both are read', () => shownTo(peer).length === 2 && orderedFor(peer).length === 2)
  for (const peer of [ann, bob, ...late]) {
    assert.deepEqual(
      [shownTo(peer), orderedFor(peer)],
      [
        ['ann', 'bob'],
        ['ann', 'bob'],
      ],
    )
  }
  for (const region of second) await region.stop()
})
