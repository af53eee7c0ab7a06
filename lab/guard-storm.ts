import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createRandom } from '../src/testing/random.ts'
import type { Cluster } from '../test/support/service/cluster.ts'
import type { Provider } from '../test/support/service/messages/provider.ts'
import { openStorms, type Storm, stormNames } from './storm/stores.ts'

/**
 * `npm run lab -- guard-storm`: identical posts at once, with keys of their own and without, over two processes. Each
 * round must reach the provider once and leave no error of the guard. Then the store of the locks falls silent in the
 * middle of a round: one send more at the most, and every send without its lock reported.
 */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    posts: { type: 'string', default: '400' },
    /** Rounds in which the store of the locks falls silent, per combination of stores. */
    pauses: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
    on: { type: 'string', multiple: true, default: [...stormNames] },
    out: { type: 'string' },
  },
})

/** Posts arrive for about as long after the first; the pause begins before them, with the first ones, or in between. */
const PAUSE_AFTER_MS = [0, 20, 1_000] as const
/** Longer than a request waits for its lock, shorter than a lease. */
const PAUSE_MS = { least: 1_000, most: 5_000 }
const PROCESSES = 2

const count = Number(values.posts)
const random = createRandom(Number(values.seed))
await using storms = await openStorms(values.on, values.out)
storms.note('all', `seed ${values.seed}`, {})
const [{ openCluster }, { startProvider }, { acceptedOf, guardErrors, postAtOnce }] = await Promise.all([
  import('../test/support/service/cluster.ts'),
  import('../test/support/service/messages/provider.ts'),
  import('../test/support/service/messages/posts.ts'),
])
await storms.each(async (storm, say) => {
  await using provider = await startProvider()
  const env = { ...storm.env, ONCEONLY_MESSAGE_WEBHOOK_URL: provider.url }
  await using cluster = await openCluster(storm.place, { processes: PROCESSES, env })
  storms.beforeExit(() => cluster.servers.forEach(({ pid }) => process.kill(pid, 'SIGKILL')))
  await quietRounds(cluster, provider, say)
  await pausedRounds(storm, cluster, provider, say)
})

async function quietRounds(cluster: Cluster, provider: Provider, say: Say): Promise<void> {
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const keyed of [false, true]) {
      const message = `round ${round} ${keyed ? 'with keys' : 'without keys'}`
      await postAtOnce(cluster, { count, message, keyed, channel: 'webhook' })
      assert.equal(sendsOf(provider, message), 1, `sends of ${message}`)
      assert.equal((await acceptedOf(cluster, message)).all, 1, `messages of ${message}`)
    }
    say(`${round + 1} of ${values.rounds} rounds of 2 × ${count} posts: one send each`, { round: round + 1 })
  }
  assert.deepEqual(guardErrors(cluster), [], 'no error of the guard')
}

async function pausedRounds(storm: Storm, cluster: Cluster, provider: Provider, say: Say): Promise<void> {
  const seen = { rounds: 0, sends: 0, unguarded: 0, reported: 0 }
  for (let round = 0; round < Number(values.pauses); round++) {
    const message = `silence ${round}`
    const reportedBefore = guardErrors(cluster).length
    const posts = { count, message, keyed: random.chance(0.5), channel: 'webhook' }
    const afterMs = random.pick(PAUSE_AFTER_MS)
    const posted = afterMs === 0 ? Promise.resolve() : postAtOnce(cluster, posts)
    await sleep(random.below(afterMs + 1))
    const wake = await storm.pauseLocks(cluster.servers.map(({ pid }) => pid))
    const meanwhile = postAtOnce(cluster, { ...posts, keyed: false })
    try {
      await sleep(PAUSE_MS.least + random.below(PAUSE_MS.most - PAUSE_MS.least))
    } finally {
      wake()
    }
    await Promise.all([posted, meanwhile])
    await postAtOnce(cluster, { ...posts, keyed: false })
    const { all, unguarded } = await acceptedOf(cluster, message)
    const sends = sendsOf(provider, message)
    const reported = guardErrors(cluster).length - reportedBefore
    assert.ok(sends === 1 || (sends === 2 && storm.locksElsewhere), `${sends} sends of ${message}, ${all} messages`)
    assert.ok(reported >= unguarded, `${unguarded} sends of ${message} without a lock, ${reported} reported`)
    seen.rounds += 1
    seen.sends += sends
    seen.unguarded += unguarded
    seen.reported += reported
    say(`${storm.lockStore} paused in ${seen.rounds} of ${values.pauses} rounds: ${JSON.stringify(seen)}`, seen)
  }
}

type Say = (line: string, figures: object) => void

/** What really reached the provider. */
function sendsOf({ calls }: Provider, message: string): number {
  return calls.filter(({ body }) => (JSON.parse(body) as { message?: unknown }).message === message).length
}
