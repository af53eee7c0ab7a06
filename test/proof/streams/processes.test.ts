import assert from 'node:assert/strict'
import { createSqlOrderLog, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { closeCodes } from '../../../src/streams/protocol/protocol.ts'
import { enter, send, wired } from '../../../src/streams/server/test-peer.ts'
import { until } from '../../../src/testing/until.ts'
import { onEverySqlStore } from '../../support/streams/stores.ts'
import { participate, quick, textsOf } from '../../support/streams/world.ts'

onEverySqlStore(
  'two processes of one region: a client that resumes in the other misses nothing',
  async ({ store, another }) => {
    const processes = new Map(
      [store, another()].map((each, index) => [
        `process-${index + 1}`,
        createStreamRegion({
          region: 'eu',
          log: createSqlRoomLog({ store: each, region: 'eu' }),
          order: createSqlOrderLog({ store: each }),
          bounds: quick,
        }),
      ]),
    )
    const names = [...processes.keys()]
    const regionOf = (name: string) => processes.get(name) ?? assert.fail(name)
    const here = { regions: names, from: 'start', transport: wired(regionOf) } as const
    const [ann, bob] = [
      await participate(String, here),
      await participate(String, { ...here, regions: names.toReversed() }),
    ]
    for (let n = 1; n <= 6; n++) {
      const said = [ann.say(`ann ${n}`), bob.say(`bob ${n}`)]
      // Before the acknowledgement: what was on its way is sent again there, and is in the log once.
      ann.client.moveTo(names[n % 2] ?? '')
      await Promise.all(said)
    }
    await until('both saw all', () => ann.seen.length >= 12 && bob.seen.length >= 12)
    for (const each of [ann, bob]) {
      assert.equal(new Set(textsOf(each)).size, 12)
      assert.equal(each.seen.length, 12)
    }
    assert.deepEqual(textsOf(ann), textsOf(bob))
    await until('one final order', () => ann.order.length === 12 && bob.order.length === 12)
    assert.deepEqual(ann.order, bob.order)

    // The other process does not know of the new session, but nothing that an old one sends is accepted any more.
    const [first, second] = names.map(regionOf)
    assert.ok(first && second)
    const old = await enter(first, 'cy', 1)
    await enter(second, 'cy', 2)
    old.say(send(1, 'too late'))
    await until('the old session is over', () => old.closed !== null)
    assert.equal(old.closed?.code, closeCodes.fenced)

    for (const each of [ann, bob]) await each.client.stop()
    for (const region of processes.values()) await region.stop()
  },
)
