import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/testing/random.ts'
import type { Cluster, TestServer } from '../../test/support/service/cluster.ts'
import type { Network } from './network.ts'
import { pauseProcess, type Storm, type Wake } from './stores.ts'

export interface Chaos {
  readonly counts: { kills: number; [paused: string]: number }
  /** All that ever ran, the dead included: their logs show what happened. */
  readonly servers: readonly TestServer[]
  /** Ends the faults: everything runs again. */
  stop(): Promise<void>
}

interface Parts {
  readonly storm: Storm
  readonly cluster: Cluster
  readonly network: Network
  readonly random: Random
  /** How many requests were answered so far. */
  answered(): number
}

const KILL_EVERY_MS = { least: 10_000, most: 20_000 }
const DOWN_MS_MOST = 3_000
const PAUSE_EVERY_MS = { least: 6_000, most: 16_000 }
const PAUSE_MS = { least: 1_000, most: 8_000 }
/** Now and then a server stands still for longer than any lease, and wakes up after others have replaced it. */
const LONG_PAUSE_SHARE = 0.08
const LONG_PAUSE_MS = { least: 35_000, most: 45_000 }
/**
 * On a busy machine a server takes long to start and to answer. Where every server is always dead or waking up there is
 * nothing to disturb, so that the next blow waits until clients have been answered, bounded.
 */
const ANSWERS_BETWEEN = 15
const CALM_MS_MOST = 60_000
/** A server that starts while its database is paused gives up; its supervisor starts it again. */
const STARTS_MOST = 20

interface Slot {
  server: TestServer
  readonly lead: (url: string | null) => void
}

/** Kills and pauses, each at its own pace, so that they also meet. */
export function startChaos({ storm, cluster, network, random, answered }: Parts): Chaos {
  const counts: Chaos['counts'] = { kills: 0 }
  const stopping = new AbortController()
  const slots: Slot[] = cluster.servers.map((server, at) => ({
    server,
    lead: (url) => [network.requests[at], network.sockets[at]].forEach((front) => front?.lead(url)),
  }))
  const servers = slots.map(({ server }) => server)
  for (const { server, lead } of slots) lead(server.url)

  const between = ({ least, most }: { least: number; most: number }) => least + random.below(most - least)
  const rest = (ms: number) => sleep(ms, null, { signal: stopping.signal }).catch(() => {})

  async function kill(slot: Slot): Promise<void> {
    counts.kills += 1
    await slot.server.kill()
    slot.lead(null)
    await rest(random.below(DOWN_MS_MOST))
    slot.server = await startAgain()
    servers.push(slot.server)
    slot.lead(slot.server.url)
  }

  async function startAgain(): Promise<TestServer> {
    for (let start = 1; ; start++) {
      try {
        return await cluster.add()
      } catch (error) {
        if (start === STARTS_MOST) throw error
        counts['failedStarts'] = (counts['failedStarts'] ?? 0) + 1
        await rest(500)
      }
    }
  }

  async function pause(): Promise<void> {
    const [name, begin] = random.pick(targets())
    const long = name === 'server' && random.chance(LONG_PAUSE_SHARE)
    const label = `paused_${name}${long ? '_past_its_leases' : ''}`
    // It may have been killed in this moment.
    const wake = await begin().catch(() => null)
    if (wake === null) return
    counts[label] = (counts[label] ?? 0) + 1
    try {
      await rest(between(long ? LONG_PAUSE_MS : PAUSE_MS))
    } finally {
      wakeUp(wake)
    }
  }

  function targets(): [string, () => Promise<Wake>][] {
    return [...Object.entries(storm.stores), ['server', () => pauseProcess(random.pick(slots).server.pid)]]
  }

  async function forever(every: { least: number; most: number }, act: () => Promise<void>): Promise<void> {
    while (!stopping.signal.aborted) {
      const before = answered()
      await rest(between(every))
      const endMs = performance.now() + CALM_MS_MOST
      while (answered() - before < ANSWERS_BETWEEN && performance.now() < endMs && !stopping.signal.aborted)
        await rest(100)
      if (!stopping.signal.aborted) await act()
    }
  }

  const loops = Promise.all([forever(KILL_EVERY_MS, () => kill(random.pick(slots))), forever(PAUSE_EVERY_MS, pause)])
  // The lab gets its error when it stops the faults.
  loops.catch(() => {})
  return {
    counts,
    servers,
    async stop() {
      stopping.abort()
      await loops
    },
  }
}

function wakeUp(wake: Wake): void {
  try {
    wake()
  } catch {
    // It was killed while it stood still.
  }
}
