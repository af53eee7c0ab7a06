import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateStreams } from '../../../lab/streams/simulation/simulation.ts'
import { apart } from '../apart/apart.ts'
import type * as Storms from './storms.ts'

/** 20 clients in 3 regions for 15 seconds; the lab has 100 in 5 for a minute. In shares, for slow machines. */
const SEEDS = 60
const SHARES = [1, 61, 121, 181, 241]
const form = { clients: 20, regions: 3, durationMs: 15_000, messages: 2 }

type Form = Parameters<typeof Storms.storms>[2]

async function storms(from: number, seeds: number, options: Form): Promise<Storms.StormsSeen['sum']> {
  const module = import.meta.resolve('./storms.ts')
  const { sum, broken } = await apart<typeof Storms, 'storms'>(module, 'storms', from, seeds, options)
  if (broken !== null) assert.fail(broken)
  return sum
}

for (const from of SHARES) {
  test(`in ${SEEDS} storms from ${from} on every client gets every message once, after its causes, in one final order`, async () => {
    const sum = await storms(from, SEEDS, form)
    // A simulation in which nothing happens proves nothing.
    assert.ok(sum.accepted > 40 * SEEDS && sum.copies > SEEDS / 4, JSON.stringify(sum))
    assert.ok(
      sum.regionCrashes > SEEDS &&
        sum.clientCrashes > 2 * SEEDS &&
        sum.moves > SEEDS &&
        sum.fences > SEEDS &&
        sum.published > 6 * SEEDS,
      JSON.stringify(sum),
    )
  })
}

test('where messages are removed early, every client that must starts over, and has everything in the end', async () => {
  // In 19 and 27 a region wakes when its peers have removed what it missed, and no client writes any more.
  const { resets } = await storms(17, 12, { ...form, bounds: { retainMs: 2_000, trimEveryMs: 500 } })
  assert.ok(resets > 12, `${resets} resets`)
})

test('a region that adopted an image leaves the final order to one that has what it lacks', async () => {
  // In 34 the region that holds the order passes over a message, and gets an effect of it.
  const storm = { hurries: 6, crossings: 8, cutOffMs: 10_000 }
  const few = { clients: 10, regions: 3, messages: 5, durationMs: 10_000, storm }
  await storms(34, 1, { ...few, bounds: { retainMs: 1_000, trimEveryMs: 500 } })
})

test('a seed gives the same run again', async () => {
  const [first, second] = [await simulateStreams({ seed: 7 }), await simulateStreams({ seed: 7 })]
  assert.deepEqual(first.tail(10_000), second.tail(10_000))
  assert.deepEqual([first.tally, first.virtualMs], [second.tally, second.virtualMs])
})

test("one's own receivers run in the simulator: each message once for each participant that applies it", async () => {
  const counts = new Map<string, Map<number, number>>()
  const { failure, tally } = await simulateStreams({
    seed: 3,
    clients: 6,
    storm: { restarts: 0 },
    receiver(client) {
      const mine = new Map<number, number>()
      counts.set(client, mine)
      return {
        message({ body }) {
          const { uid } = body as { uid: number }
          mine.set(uid, (mine.get(uid) ?? 0) + 1)
        },
      }
    },
  })
  assert.equal(failure, null)
  assert.equal(counts.size, 6)
  for (const mine of counts.values()) {
    assert.equal(mine.size, tally.accepted)
    assert.ok([...mine.values()].every((count) => count === 1))
  }
})

test('a receiver that throws forever is found out', async () => {
  const { failure } = await simulateStreams({
    seed: 1,
    clients: 2,
    durationMs: 1_000,
    receiver: () => ({
      message() {
        throw new Error('never')
      },
    }),
  })
  assert.equal(failure?.rule, 'once')
})
