import type { StreamBounds } from '../../../src/streams/bounds.ts'
import type { StreamReceiver } from '../../../src/streams/client/intake.ts'
import { streamLimits } from '../../../src/streams/limits.ts'
import { createMemoryOrderLog } from '../../../src/streams/log/memory-order.ts'
import type { OrderLog } from '../../../src/streams/ports.ts'
import { identityText } from '../../../src/streams/protocol/protocol.ts'
import type { SimulatedProcess, Simulation } from '../../../test/support/simulation.ts'
import { createFenceWatch } from './fence.ts'
import type { StreamFailure } from './judge.ts'
import { createStreamJudge } from './judge.ts'
import type { StreamNetwork, StreamWeather } from './network.ts'
import { createStreamNetwork } from './network.ts'
import type { Participant } from './participant.ts'
import { createParticipant } from './participant.ts'
import { createSimulatedRegion, ROOM } from './region.ts'
import { createServers } from './servers.ts'

/** What a run was made of: one in which nothing happened proves nothing. */
export interface StreamTally {
  accepted: number
  copies: number
  regionCrashes: number
  clientCrashes: number
  moves: number
  /** Clients that were resumed after the region they came from had fenced them. */
  fences: number
  absences: number
  resets: number
  /** Messages of servers, each stored in one region or more. */
  published: number
}

/** One room in several regions, with people in them. */
export interface StreamWorld {
  readonly clients: readonly string[]
  readonly regions: readonly string[]
  readonly network: StreamNetwork
  readonly failure: StreamFailure | null
  readonly tally: StreamTally
  say(client: string): void
  /** A server says something, and then something that follows from it. */
  publish(): void
  leave(client: string): void
  comeBack(client: string, elsewhere: string | null): void
  move(client: string, region: string): void
  /** Moves it; when it has to start over next, it writes at once. */
  cross(client: string, region: string): void
  /** False when it is down already. */
  crashClient(client: string): boolean
  startClient(client: string): void
  crashRegion(region: string): boolean
  startRegion(region: string): void
  pauseRegion(region: string, ms: number): void
  failNextWrite(region: string, done: boolean): void
  orderAway(away: boolean): void
  note(text: string): void
  run(bound: { readonly stormMs: number; readonly untilMs: number; readonly events: number }): Promise<void>
  tail(lines: number): readonly string[]
}

const LOOK_MS = 250
const ORDER_MS = 10
const AT_LEAST_ONCE_SHARE = 0.2
/** How many answer a question at once, on the average. */
const REPLIES = 3
const MOST_LINES = 5_000

export function createStreamWorld(options: {
  readonly sim: Simulation
  readonly regions: readonly string[]
  readonly clients: readonly string[]
  readonly weather: StreamWeather
  readonly bounds: Partial<StreamBounds>
  readonly expires: boolean
  receiver?(client: string): StreamReceiver
}): StreamWorld {
  const { sim, regions, clients, bounds } = options
  const { expires } = options
  const judge = createStreamJudge(sim.now, expires)
  const network = createStreamNetwork(sim, options.weather)
  const orderLog = createMemoryOrderLog({ nowMs: sim.now })
  const lines: string[] = []
  const tally: StreamTally = {
    accepted: 0,
    copies: 0,
    regionCrashes: 0,
    clientCrashes: 0,
    moves: 0,
    fences: 0,
    absences: 0,
    resets: 0,
    published: 0,
  }
  const fences = createFenceWatch({
    judge,
    nowMs: sim.now,
    fenceMs: bounds.fenceMs ?? streamLimits.fenceMs,
    fenced: () => void (tally.fences += 1),
  })
  let orderAway = false
  let uids = 0
  /** They write as soon as they start over. */
  const crossing = new Set<string>()

  function note(text: string): void {
    lines.push(`${Math.round(sim.now())} ${text}`)
    if (lines.length > 2 * MOST_LINES) lines.splice(0, MOST_LINES)
  }

  /** The shared store, as one process reaches it. */
  function order(by: SimulatedProcess): OrderLog {
    const over = async <T>(work: () => Promise<T>): Promise<T> => {
      const wait = () =>
        new Promise<void>((resolve) => void by.runtime.setTimer(sim.random.next() * ORDER_MS, resolve, true))
      await wait()
      if (orderAway) throw new Error('the final order is away')
      const result = await work()
      await wait()
      return result
    }
    return {
      claim: (room, holder, leaseMs) => over(() => orderLog.claim(room, holder, leaseMs)),
      append: (room, batch) => over(() => orderLog.append(room, batch)),
      read: (room, after, most) => over(() => orderLog.read(room, after, most)),
      places: (room, identities) => over(() => orderLog.places(room, identities)),
      trim: (room, keep) => over(() => orderLog.trim(room, keep)),
    }
  }

  const regionOf = new Map(
    regions.map((name) => {
      const peers = regions.filter((each) => each !== name)
      const problem = (error: unknown) => note(`${name}: ${String(error)}`)
      return [
        name,
        createSimulatedRegion({ sim, name, peers, network, order, judge, fences, bounds, problem }),
      ] as const
    }),
  )
  const clientOf = new Map(
    clients.map((name, index) => {
      const mode = sim.random.chance(AT_LEAST_ONCE_SHARE) ? 'at-least-once' : 'effectively-once'
      const home = regions[index % regions.length] ?? ''
      const replyChance = Math.min(0.5, REPLIES / clients.length)
      const { receiver } = options
      const given = receiver === undefined ? {} : { receiver }
      return [name, participant({ name, home, mode, replyChance, ...given })] as const
    }),
  )

  const servers = createServers({
    sim,
    judge,
    nextUid: () => ++uids,
    pick: () => regionOf.get(sim.random.pick(regions)),
    published: () => void (tally.published += 1),
  })

  type Own = 'name' | 'home' | 'mode' | 'replyChance' | 'receiver'
  function participant(own: Pick<Parameters<typeof createParticipant>[0], Own>): Participant {
    const nextUid = () => ++uids
    const startedOver = () => {
      tally.resets += 1
      if (crossing.delete(own.name)) clientOf.get(own.name)?.say()
    }
    return createParticipant({
      sim,
      room: ROOM,
      regions,
      network,
      judge,
      bounds,
      expires,
      startedOver,
      nextUid,
      note,
      ...own,
    })
  }

  /** No client writes any more: a client that enters now is helped by no later event. */
  function enterLate(): void {
    const home = sim.random.pick(regions)
    const late = participant({ name: 'late', home, mode: 'effectively-once', replyChance: 0 })
    clientOf.set('late', late)
    late.start()
    note(`a new client enters a quiet room in ${home}`)
  }

  function heal(): void {
    note('everything is healed')
    network.divide([])
    orderAway = false
    crossing.clear()
    for (const region of regionOf.values()) region.start()
    for (const [name, client] of clientOf) {
      network.offline(name, false)
      client.start()
    }
  }

  function unfinished(): string | null {
    if (servers.pending > 0) return `servers have ${servers.pending} pending`
    for (const [name, client] of clientOf) {
      if (!client.up) return `${name} is down`
      if (client.pending > 0) return `${name} has ${client.pending} pending`
    }
    return judge.complete([...clientOf.keys()])
  }

  /** Every region shows every identity once, in its order. */
  async function inspectLogs(): Promise<void> {
    for (const [name, { log }] of regionOf) {
      const shown = new Set<string>()
      for (const entry of await log.read(ROOM, 0, {
        entries: Number.MAX_SAFE_INTEGER,
        bytes: Number.MAX_SAFE_INTEGER,
      })) {
        if (entry.copy) tally.copies += 1
        else if (shown.has(identityText(entry))) judge.fail('copies', `${name} shows ${identityText(entry)} twice`)
        shown.add(identityText(entry))
      }
    }
    tally.accepted = judge.accepted.size
  }

  for (const region of regionOf.values()) region.start()
  for (const client of clientOf.values()) client.start()

  return {
    clients,
    regions,
    network,
    tally,
    note,
    get failure() {
      return judge.failure
    },
    say: (client) => clientOf.get(client)?.say(),
    publish: () => servers.say(),
    leave(client) {
      note(`${client} is offline`)
      tally.absences += 1
      network.offline(client, true)
      network.cut(client, true)
    },
    comeBack(client, elsewhere) {
      note(`${client} is back${elsewhere === null ? '' : ` in ${elsewhere}`}`)
      network.offline(client, false)
      if (elsewhere !== null) clientOf.get(client)?.move(elsewhere)
    },
    move(client, region) {
      note(`${client} moves to ${region}`)
      tally.moves += 1
      clientOf.get(client)?.move(region)
    },
    cross(client, region) {
      note(`${client} crosses to ${region}`)
      crossing.add(client)
      clientOf.get(client)?.move(region)
    },
    crashClient(client) {
      const crashing = clientOf.get(client)
      if (crashing?.up !== true) return false
      note(`${client} crashes`)
      tally.clientCrashes += 1
      crashing.crash()
      return true
    },
    startClient: (client) => clientOf.get(client)?.start(),
    crashRegion(region) {
      const crashing = regionOf.get(region)
      if (crashing?.up !== true) return false
      note(`${region} crashes`)
      tally.regionCrashes += 1
      crashing.crash()
      return true
    },
    startRegion: (region) => regionOf.get(region)?.start(),
    pauseRegion(region, ms) {
      note(`${region} stands still for ${Math.round(ms)} ms`)
      regionOf.get(region)?.pause(ms)
    },
    failNextWrite: (region, done) => regionOf.get(region)?.failNextWrite(done),
    orderAway(away) {
      orderAway = away
    },
    async run({ stormMs, untilMs, events }) {
      let healed = false
      let quiet = false
      let atRest = false
      const look = () => {
        if (!healed && sim.now() >= stormMs) {
          healed = true
          heal()
        }
        const complete = healed && unfinished() === null
        if (complete && quiet) atRest = true
        else sim.timer(LOOK_MS, look)
        if (complete && !quiet) {
          quiet = true
          enterLate()
        }
      }
      sim.timer(LOOK_MS, look)
      const end = await sim.run({ untilMs, events, enough: () => atRest || judge.failure !== null })
      await inspectLogs()
      if (!atRest) judge.fail('progress', `${end}: ${unfinished() ?? 'nothing is missing'}`)
      judge.end([...clientOf.keys()])
    },
    tail: (count) => lines.slice(-count),
  }
}
