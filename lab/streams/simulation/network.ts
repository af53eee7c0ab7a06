import type { ClientTransport, LinkEvents } from '../../../src/streams/client/ports.ts'
import type { Exchange, RegionHint, RegionPeer, Session, SessionLink } from '../../../src/streams/ports.ts'
import type { FrameData } from '../../../src/streams/protocol/codec.ts'
import type { SimulatedProcess, Simulation } from '../../../test/support/simulation.ts'

/** How a link treats what it carries; times in virtual milliseconds. */
export interface StreamWeather {
  /** From a client to a region, at least, and this much more by chance. */
  readonly clientMs: number
  readonly clientJitterMs: number
  /** Between regions. */
  readonly regionMs: number
  readonly regionJitterMs: number
  /** The share of hints that are lost, and of those that come twice. */
  readonly hintLost: number
  readonly hintTwice: number
  /** The share of deliveries that a broken proxy repeats, some of them later, or lets overtake each other. */
  readonly frameTwice: number
  readonly frameSwapped: number
  /** The share of resumes that are asked again while the first is being answered, as by a client that is impatient. */
  readonly resumeTwice: number
  /** As much later as a second copy may come. */
  readonly frameLateMs: number
}

export const mildWeather: StreamWeather = {
  clientMs: 5,
  clientJitterMs: 20,
  regionMs: 20,
  regionJitterMs: 60,
  hintLost: 0.1,
  hintTwice: 0.1,
  frameTwice: 0.02,
  frameSwapped: 0.02,
  resumeTwice: 0.3,
  frameLateMs: 100,
}

/** Where a region lives now; a restart puts another one in its place. */
export interface RegionHome {
  readonly process: SimulatedProcess
  connect(link: SessionLink): Session
}

/** Everything between clients and regions, and among regions. */
export interface StreamNetwork {
  transport(client: string, process: SimulatedProcess): ClientTransport
  exchange(region: string, process: SimulatedProcess, pullMs: number): Exchange
  house(region: string, home: RegionHome | null): void
  /** These pairs of regions, and no others, do not reach each other. */
  divide(pairs: readonly (readonly [string, string])[]): void
  /** The client reaches no region. */
  offline(client: string, off: boolean): void
  /** Adds to every frame of a client, each way. */
  slow(client: string, ms: number): void
  /** Ends the connections of a client: with a word, or in silence. */
  cut(client: string, silent: boolean): void
  /** Ends every connection to a region that crashed. */
  crashed(region: string): void
}

/** How often a frame knocks at a process that stands still. */
const PAUSED_MS = 50

function awake({ crashed, paused }: SimulatedProcess): boolean {
  return !crashed && !paused
}

function isResume(data: FrameData): boolean {
  return typeof data === 'string' && data.startsWith('{"kind":"resume"')
}

function isDelivery(data: FrameData): boolean {
  return typeof data === 'string' && /^{"kind":"(deliver|order)"/.test(data)
}

interface Wire {
  readonly client: string
  readonly region: string
  readonly process: SimulatedProcess
  readonly home: RegionHome
  readonly events: LinkEvents
  session: Session | null
  /** Nothing passes any more; an end without a notification is detected by silence. */
  dead: boolean
  clientClosed: boolean
}

export function createStreamNetwork(sim: Simulation, weather: StreamWeather): StreamNetwork {
  const { random } = sim
  const homes = new Map<string, RegionHome>()
  const peers = new Map<string, { readonly peer: RegionPeer; readonly process: SimulatedProcess }>()
  const wires = new Set<Wire>()
  const offline = new Set<string>()
  const slowness = new Map<string, number>()
  let divided: readonly (readonly [string, string])[] = []

  function reach(from: string, to: string): boolean {
    return !divided.some(([a, b]) => (a === from && b === to) || (a === to && b === from))
  }

  /** One direction of a wire: in order, each as late as chance says but never before the last. */
  function lane(wire: Wire, to: SimulatedProcess, deliver: (data: FrameData) => void): (data: FrameData) => void {
    const queue: { readonly atMs: number; readonly data: FrameData }[] = []
    let lastMs = 0
    let scheduled = false
    function fire(): void {
      scheduled = false
      if (to.paused && !to.crashed) {
        scheduled = true
        return void sim.timer(PAUSED_MS, fire)
      }
      while ((queue[0]?.atMs ?? Number.POSITIVE_INFINITY) <= sim.now()) {
        const { data } = queue.shift() as { data: FrameData }
        if (!wire.dead && !offline.has(wire.client)) deliver(data)
      }
      schedule()
    }
    /** At once, or after the receiver has continued. */
    function repeat(data: FrameData, atMs: number): void {
      if (random.chance(0.5)) return void queue.push({ atMs, data })
      sim.timer(atMs + random.next() * weather.frameLateMs - sim.now(), () => {
        if (!wire.dead && !offline.has(wire.client) && awake(to)) deliver(data)
      })
    }
    function schedule(): void {
      const [head] = queue
      if (scheduled || head === undefined) return
      scheduled = true
      sim.timer(head.atMs - sim.now(), fire)
    }
    return (data) => {
      const delayMs = weather.clientMs + random.next() * weather.clientJitterMs + (slowness.get(wire.client) ?? 0)
      lastMs = Math.max(lastMs, sim.now() + delayMs)
      queue.push({ atMs: lastMs, data })
      const before = queue.at(-2)
      if (isResume(data) && random.chance(weather.resumeTwice)) repeat(data, lastMs)
      else if (isDelivery(data) && random.chance(weather.frameTwice)) repeat(data, lastMs)
      else if (
        before !== undefined &&
        isDelivery(data) &&
        isDelivery(before.data) &&
        random.chance(weather.frameSwapped)
      ) {
        queue.splice(-2, 2, { ...before, data }, { atMs: lastMs, data: before.data })
      }
      schedule()
    }
  }

  function end(wire: Wire, code: number | null, reason: string, silent: boolean): void {
    if (wire.dead) return
    wire.dead = true
    wires.delete(wire)
    if (silent) return
    const { session } = wire
    if (session !== null && !wire.home.process.crashed) sim.timer(weather.clientMs, () => session.closed())
    if (!wire.clientClosed) {
      sim.timer(weather.clientMs, () => {
        if (!wire.process.crashed && !offline.has(wire.client)) wire.events.closed(code, reason)
      })
    }
  }

  function open(wire: Wire): ((data: FrameData) => void) | null {
    const toClient = lane(wire, wire.process, (data) => {
      if (!wire.process.crashed) wire.events.received(data)
    })
    const session = wire.home.connect({
      send: toClient,
      close: (code, reason) => end(wire, code, reason, false),
      bufferedBytes: 0,
    })
    wire.session = session
    wire.events.opened()
    return lane(wire, wire.home.process, (data) => {
      if (!wire.home.process.crashed) session.received(data)
    })
  }

  return {
    transport: (client, process) => ({
      connect(region, events) {
        let toRegion: ((data: FrameData) => void) | null = null
        let wire: Wire | null = null
        let closedEarly = false
        const early: FrameData[] = []
        sim.timer(weather.clientMs + (slowness.get(client) ?? 0), () => {
          if (process.crashed || closedEarly) return
          const home = homes.get(region)
          if (home === undefined || !awake(home.process) || offline.has(client))
            return events.closed(null, 'unreachable')
          wire = { client, region, process, home, events, session: null, dead: false, clientClosed: false }
          wires.add(wire)
          // The hello is said while the lanes are being laid.
          toRegion = (data) => void early.push(data)
          toRegion = open(wire)
          for (const data of early) toRegion?.(data)
        })
        return {
          send: (data) => toRegion?.(data),
          close() {
            closedEarly = true
            if (wire === null) return
            const closing = wire
            closing.clientClosed = true
            // What is under way arrives all the same, both ways, until the other side has closed, too.
            const lateMs = weather.clientMs + weather.clientJitterMs + (slowness.get(client) ?? 0)
            sim.timer(2 * lateMs, () => end(closing, null, 'closed', false))
          },
        }
      },
    }),

    exchange(region, process, pullMs) {
      const lateMs = () => weather.regionMs + random.next() * weather.regionJitterMs
      const deliverHint = (to: string, hint: RegionHint) => {
        sim.timer(lateMs(), () => {
          const target = peers.get(to)
          if (target !== undefined && awake(target.process) && reach(region, to)) target.peer.hinted(hint)
        })
      }
      const ask = <A>(to: string, answer: (peer: RegionPeer) => Promise<A>): Promise<A> =>
        new Promise<A>((resolve, reject) => {
          const timeout = process.runtime.setTimer(pullMs, () => reject(new Error(`${to} is away`)), true)
          sim.timer(lateMs(), () => {
            const target = peers.get(to)
            if (target === undefined || !awake(target.process) || !reach(region, to)) return
            answer(target.peer).then((answered) => {
              sim.timer(lateMs(), () => {
                if (!awake(process) || target.process.crashed || !reach(region, to)) return
                timeout.cancel()
                resolve(answered)
              })
            }, reject)
          })
        })
      return {
        pull: (to, request) => ask(to, (peer) => peer.pull(request)),
        fence: (to, request) => ask(to, (peer) => peer.fence(request)),
        hint(hint) {
          if (process.crashed) return
          for (const to of peers.keys()) {
            if (to === region) continue
            if (!random.chance(weather.hintLost)) deliverHint(to, hint)
            if (random.chance(weather.hintTwice)) deliverHint(to, hint)
          }
        },
        serve(peer) {
          peers.set(region, { peer, process })
          return {
            async stop() {
              if (peers.get(region)?.peer === peer) peers.delete(region)
            },
          }
        },
      }
    },

    house(region, home) {
      if (home === null) homes.delete(region)
      else homes.set(region, home)
    },
    divide(pairs) {
      divided = pairs
    },
    offline(client, off) {
      if (off) offline.add(client)
      else offline.delete(client)
    },
    slow: (client, ms) => void slowness.set(client, ms),
    cut(client, silent) {
      for (const wire of wires) if (wire.client === client) end(wire, null, 'cut', silent)
    },
    crashed(region) {
      // Some get the operating system's reset, some detect it by silence.
      for (const wire of wires) if (wire.region === region) end(wire, null, 'the region crashed', random.chance(0.3))
    },
  }
}
