import { sleep } from '../../../src/runtime/runtime.ts'
import type { StreamBounds } from '../../../src/streams/bounds.ts'
import { createMemoryRoomLog } from '../../../src/streams/log/memory-log.ts'
import type { OrderLog, RoomBatch, RoomLog, RoomWritten } from '../../../src/streams/ports.ts'
import type { Position } from '../../../src/streams/protocol/protocol.ts'
import type { PublishedMessage } from '../../../src/streams/server/publish.ts'
import type { StreamRegion } from '../../../src/streams/server/region.ts'
import { createStreamRegion } from '../../../src/streams/server/region.ts'
import type { SimulatedProcess, Simulation } from '../../../test/support/simulation.ts'
import type { FenceWatch } from './fence.ts'
import type { StreamJudge } from './judge.ts'
import type { StreamNetwork } from './network.ts'

/** A region's machine: its log survives, its processes do not. */
export interface SimulatedRegion {
  readonly log: RoomLog
  readonly up: boolean
  start(): void
  crash(): void
  pause(ms: number): void
  /** As a server that runs here does it; never answers once it has crashed. */
  publish(uid: number, seen?: Position): Promise<PublishedMessage>
  /** The next write fails; with `done`, after it was done. */
  failNextWrite(done: boolean): void
}

/** The one room of a simulation. */
export const ROOM = 'room'
const WRITE_MS = 3
/** Now and then a log is slow to read: long enough for its reader to ask again in the meantime. */
const SLOW_READ_CHANCE = 0.1
const SLOW_READ_MS = 150

export function createSimulatedRegion(options: {
  readonly sim: Simulation
  readonly name: string
  readonly peers: readonly string[]
  readonly network: StreamNetwork
  readonly order: (process: SimulatedProcess) => OrderLog
  readonly judge: StreamJudge
  readonly fences: FenceWatch
  readonly bounds: Partial<StreamBounds>
  problem(error: unknown): void
}): SimulatedRegion {
  const { sim, name, peers, network, judge, fences, bounds } = options
  const log = createMemoryRoomLog({ region: name, nowMs: sim.now })
  let process: SimulatedProcess | null = null
  let region: StreamRegion | null = null
  let failing: 'before' | 'after' | null = null

  function inspect(room: string, { sends }: RoomBatch, { results, stored }: RoomWritten): void {
    for (const [index, { client, generation }] of sends.entries()) {
      const result = results[index]
      if (result?.kind !== 'accepted' || result.duplicate) continue
      if (generation !== null) fences.wrote(name, room, client, generation)
    }
    for (const entry of stored) {
      if (entry.log.startsWith(`${name}.`)) judge.tookIn((entry.body as { uid: number }).uid, entry)
    }
  }

  /** The log as a process reaches it: with delays in which it may crash, and not at all once it has. */
  function reached(by: SimulatedProcess): RoomLog {
    const pause = (mostMs = WRITE_MS) => sleep(by.runtime, sim.random.next() * mostMs, true)
    const alive = <T>(work: () => Promise<T>): Promise<T> => (by.crashed ? new Promise(() => {}) : work())
    // The answer is old when it comes: others have written, asked and left in the meantime.
    const asked = <T>(work: () => Promise<T>): Promise<T> =>
      alive(async () => {
        const answer = await work()
        await pause(sim.random.chance(SLOW_READ_CHANCE) ? SLOW_READ_MS : WRITE_MS)
        return answer
      })
    return {
      open: (room) => asked(() => log.open(room)),
      find: (room, position) => asked(() => log.find(room, position)),
      read: (room, after, bound) => asked(() => log.read(room, after, bound)),
      sender: (room, client, epoch) => asked(() => log.sender(room, client, epoch)),
      due: (againMs, most) => alive(() => log.due(againMs, most)),
      trim: (room, keep) => alive(() => log.trim(room, keep)),
      image: (room) => alive(() => log.image(room)),
      adopt: (room, image) => alive(() => log.adopt(room, image)),
      listen: (room, wake) => log.listen(room, () => void (by.crashed || wake())),
      enter: (room, claim) =>
        alive(async () => {
          await pause()
          const entered = await log.enter(room, claim)
          if (entered.kind === 'entered') fences.entered(name, room, claim)
          await pause()
          return entered
        }),
      write: (room, batch) =>
        alive(async () => {
          await pause()
          const fails = failing
          failing = null
          if (fails === 'before') throw new Error('the log is away')
          const written = await log.write(room, batch)
          inspect(room, batch, written)
          await pause()
          if (fails === 'after') throw new Error('the log did not answer')
          return written
        }),
    }
  }

  function start(): void {
    if (process !== null && !process.crashed) return
    const life = sim.process()
    process = life
    const exchange = network.exchange(name, life, bounds.pullMs ?? 1_000)
    const { runtime } = life
    const reachedLog = reached(life)
    const order = options.order(life)
    region = createStreamRegion({
      region: name,
      log: reachedLog,
      order,
      exchange,
      peers,
      runtime,
      bounds,
      // What the application makes of the room, in a store that all regions share.
      snapshot: async () => [...judge.accepted],
      onProblem: options.problem,
    })
    const { connect } = region
    network.house(name, { process: life, connect: fences.connect(name, (link) => connect(link)) })
  }

  return {
    log,
    get up() {
      return process !== null && !process.crashed
    },
    start,
    crash() {
      process?.crash()
      network.house(name, null)
      network.crashed(name)
    },
    pause: (ms) => process?.pause(ms),
    publish(uid, seen) {
      if (region === null || process?.crashed === true) return Promise.reject(new Error(`${name} is down`))
      return region.publish(ROOM, { uid, asks: false }, { id: `${uid}`, ...(seen === undefined ? {} : { seen }) })
    },
    failNextWrite(done) {
      failing = done ? 'after' : 'before'
    },
  }
}
