import type { Random } from '../../../src/testing/random.ts'
import type { Simulation } from '../../../test/support/simulation.ts'
import type { StreamWorld } from './world.ts'

/** How often what happens during a storm. */
export interface StreamStorm {
  /** Regions that crash and come back. */
  readonly crashes: number
  /** Regions that are paused for a while, as by SIGSTOP, and then continue. */
  readonly pauses: number
  /** Times in which some regions do not reach the others. */
  readonly partitions: number
  /** The longest of them. */
  readonly cutOffMs: number
  /**
   * Clients that, in each of them, write and move before the acknowledgement, to a region that does not have the
   * message yet.
   */
  readonly hurries: number
  /**
   * Clients that, in the middle of each of them, move to the other side, and write at once if they must start over
   * there: what they were shown before has not come to that side.
   */
  readonly crossings: number
  /** Clients that are away for a while; half of them come back in another region. */
  readonly absences: number
  readonly absenceMs: number
  /** Clients that crash and start again. */
  readonly restarts: number
  /** Connections that are cut. */
  readonly cuts: number
  /** Clients that move while they are connected. */
  readonly moves: number
  /** Clients on a link of 500 ms. */
  readonly slow: number
  /** Times in which the final order's store does not answer. */
  readonly orderOutages: number
  /** Writes of a region's log that fail, done or not. */
  readonly logFailures: number
  /** Times in which a server says something. */
  readonly publishes: number
}

export const shortStorm: StreamStorm = {
  crashes: 2,
  pauses: 1,
  partitions: 2,
  cutOffMs: 5_000,
  hurries: 3,
  crossings: 0,
  absences: 5,
  absenceMs: 4_000,
  restarts: 3,
  cuts: 5,
  moves: 3,
  slow: 1,
  orderOutages: 1,
  logFailures: 3,
  publishes: 4,
}

const SLOW_MS = 500
const MOST_DOWN_MS = 3_000
/** Longer than a lease of the final order. */
const MOST_PAUSE_MS = 4_000
const HURRY_MS = 60
const MOST_OUTAGE_MS = 3_000

/** Puts everything that will happen on the clock. */
export function planStorm(options: {
  readonly sim: Simulation
  readonly world: StreamWorld
  readonly random: Random
  readonly storm: StreamStorm
  readonly durationMs: number
  readonly messages: number
}): void {
  const { sim, world, random, storm, durationMs, messages } = options
  const { clients, regions } = world

  function often(count: number, happen: () => void): void {
    for (let each = 0; each < count; each++) sim.timer(random.next() * durationMs, happen)
  }

  /** Writes, and moves to another region before an acknowledgement can come. */
  function hurry(to: string): void {
    const client = random.pick(clients)
    sim.timer(random.next() * HURRY_MS, () => {
      world.say(client)
      sim.timer(random.next() * HURRY_MS, () => {
        world.network.cut(client, true)
        world.move(client, to)
      })
    })
  }

  for (const client of clients) {
    for (let each = 0; each < messages; each++) sim.timer(random.next() * durationMs, () => world.say(client))
  }
  for (let each = 0; each < storm.slow; each++) world.network.slow(random.pick(clients), SLOW_MS)

  often(storm.crashes, () => {
    const region = random.pick(regions)
    if (world.crashRegion(region)) sim.timer(random.next() * MOST_DOWN_MS, () => world.startRegion(region))
  })
  often(storm.pauses, () => world.pauseRegion(random.pick(regions), random.next() * MOST_PAUSE_MS))
  often(storm.partitions, () => {
    const apart = regions.filter(() => random.chance(0.5))
    const others = regions.filter((region) => !apart.includes(region))
    const pairs = apart.flatMap((a) => others.map((b) => [a, b] as const))
    // Sometimes only one pair is cut off, and the way round by a third region is open.
    world.network.divide(random.chance(0.3) ? pairs.slice(0, 1) : pairs)
    world.note(`${apart.join(' ')} and ${others.join(' ')} do not reach each other`)
    const cutOffMs = random.next() * storm.cutOffMs
    sim.timer(cutOffMs, () => world.network.divide([]))
    for (let each = 0; each < storm.hurries; each++) hurry(random.pick(others.length > 0 ? others : regions))
    for (let each = 0; each < storm.crossings; each++) {
      const client = random.pick(clients)
      const to = random.pick(others.length > 0 ? others : regions)
      sim.timer(cutOffMs * (0.3 + random.next() / 3), () => world.cross(client, to))
    }
  })
  often(storm.absences, () => {
    const client = random.pick(clients)
    const elsewhere = random.chance(0.5) ? random.pick(regions) : null
    world.leave(client)
    sim.timer(storm.absenceMs * (0.5 + random.next()), () => world.comeBack(client, elsewhere))
  })
  often(storm.restarts, () => {
    const client = random.pick(clients)
    if (world.crashClient(client)) sim.timer(random.next() * MOST_DOWN_MS, () => world.startClient(client))
  })
  often(storm.cuts, () => world.network.cut(random.pick(clients), random.chance(0.3)))
  often(storm.moves, () => world.move(random.pick(clients), random.pick(regions)))
  often(storm.orderOutages, () => {
    world.orderAway(true)
    sim.timer(random.next() * MOST_OUTAGE_MS, () => world.orderAway(false))
  })
  often(storm.publishes, () => world.publish())
  often(storm.logFailures, () => world.failNextWrite(random.pick(regions), random.chance(0.5)))
}
