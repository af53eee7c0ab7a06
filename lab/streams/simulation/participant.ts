import { sleep } from '../../../src/runtime/runtime.ts'
import type { StreamBounds } from '../../../src/streams/bounds.ts'
import { createStreamClient } from '../../../src/streams/client/client.ts'
import type { StreamReceiver } from '../../../src/streams/client/intake.ts'
import { createMemoryStorage } from '../../../src/streams/client/memory-storage.ts'
import type { StreamClient } from '../../../src/streams/client/options.ts'
import type { ClientStorage } from '../../../src/streams/client/ports.ts'
import type { DeliveryMode } from '../../../src/streams/parts/delivery.ts'
import type { Entry, MessageIdentity } from '../../../src/streams/protocol/protocol.ts'
import type { SimulatedProcess, Simulation } from '../../../test/support/simulation.ts'
import type { StreamJudge } from './judge.ts'
import type { StreamNetwork } from './network.ts'

/** A person with a device: the storage survives, the processes do not. */
export interface Participant {
  readonly up: boolean
  readonly pending: number
  start(): void
  crash(): void
  say(): void
  move(region: string): void
}

/** What people write: a number to know it by, and whether it asks for answers. */
interface Utterance {
  readonly uid: number
  readonly asks: boolean
}

const ASK_CHANCE = 0.25
const SLOW_EFFECT_CHANCE = 0.05
const SLOW_EFFECT_MS = 50
const MOVE_IN_EFFECT_CHANCE = 0.01
const SLOW_PLACE_CHANCE = 0.1
const SLOW_PLACE_MS = 5
/** Answers are to one of the last few messages. */
const RECENT = 5

export function createParticipant(options: {
  readonly sim: Simulation
  readonly name: string
  readonly room: string
  readonly home: string
  readonly regions: readonly string[]
  readonly mode: DeliveryMode
  readonly network: StreamNetwork
  readonly judge: StreamJudge
  readonly bounds: Partial<StreamBounds>
  /** Of answering a question as soon as it is shown. */
  readonly replyChance: number
  /** Messages are removed so soon that a client that was away may have to start over. */
  readonly expires: boolean
  startedOver(): void
  nextUid(): number
  receiver?(client: string): StreamReceiver
  note(text: string): void
}): Participant {
  const { sim, name, mode, network, judge, bounds, note } = options
  const { random } = sim
  const storage = createMemoryStorage()
  /** What this device has durably applied, in order. */
  const durable: number[] = []
  let process: SimulatedProcess | null = null
  let client: StreamClient | null = null
  let life = 0
  let written = 0
  let region = options.home
  /** Of this life: what it was shown, and how much of that stood before its last message. */
  let known: number[] = []
  let declared = 0
  let recent: MessageIdentity[] = []
  /** What this device has from a snapshot. */
  const startedOver = new Set<number>()

  /** The storage as one life reaches it. What an effect did becomes durable together with the position, or not at all. */
  function reached(by: SimulatedProcess, staged: number[]): ClientStorage {
    const slowly = async <T>(work: () => Promise<T>): Promise<T> => {
      if (by.crashed) return new Promise(() => {})
      if (random.chance(SLOW_PLACE_CHANCE)) await sleep(by.runtime, random.next() * SLOW_PLACE_MS, true)
      const result = await work()
      if (random.chance(SLOW_PLACE_CHANCE)) await sleep(by.runtime, random.next() * SLOW_PLACE_MS, true)
      return result
    }
    const commit = () => durable.push(...staged.splice(0))
    return {
      load: () => storage.load(),
      identify: (identity) => slowly(() => storage.identify(identity)),
      renew: (identity, pending) => slowly(() => storage.renew(identity, pending)),
      save: (pending) => slowly(() => storage.save(pending)),
      remove: (below, ranges) => slowly(() => storage.remove(below, ranges)),
      acknowledged: (at) => slowly(() => storage.acknowledged(at)),
      advance: (position) =>
        slowly(async () => {
          commit()
          await storage.advance(position)
        }),
      settle: (key, position, effect) =>
        slowly(() =>
          storage.settle(key, position, async () => {
            await effect()
            for (const uid of staged) judge.applied(name, uid, false)
            commit()
          }),
        ),
    }
  }

  function say(replyTo: MessageIdentity | null = null): Promise<void> {
    const speaker = client
    if (speaker === null || process?.crashed === true) return Promise.resolve()
    const uid = options.nextUid()
    judge.said({ uid, sender: name, index: ++written, causes: known.slice(declared) })
    declared = known.length
    const answered = replyTo ?? (random.chance(0.3) && recent.length > 0 ? random.pick(recent) : null)
    const body: Utterance = { uid, asks: replyTo === null && random.chance(ASK_CHANCE) }
    return speaker.send(body, answered === null ? {} : { replyTo: answered }).then((sent) => {
      sent.accepted.then(
        () => judge.acknowledged(uid),
        (error: unknown) => judge.fail('identity', `${name} was left in doubt: ${String(error)}`),
      )
    })
  }

  function move(to: string): void {
    region = to
    client?.moveTo(to)
  }

  function receiverOf(by: SimulatedProcess, mine: number, staged: number[]): StreamReceiver {
    const theirs = options.receiver?.(name)
    return {
      async message(entry: Entry) {
        const { uid, asks } = entry.body as Utterance
        // The snapshot was taken after the head was read, so that it may hold some of what follows.
        if (startedOver.has(uid)) return
        judge.shown(name, mine, uid)
        known.push(uid)
        recent = [...recent.slice(1 - RECENT), { client: entry.client, epoch: entry.epoch, cseq: entry.cseq }]
        if (random.chance(SLOW_EFFECT_CHANCE)) await sleep(by.runtime, random.next() * SLOW_EFFECT_MS, true)
        await theirs?.message(entry)
        if (random.chance(MOVE_IN_EFFECT_CHANCE)) move(random.pick(options.regions))
        // Several answer at once, from inside of their effects.
        if (asks && random.chance(options.replyChance)) await say(entry)
        staged.push(uid)
        if (mode !== 'effectively-once') judge.applied(name, uid, mine > 1)
      },
      ordered(identity, at) {
        judge.ordered(name, identity, at)
        theirs?.ordered?.(identity, at)
      },
      reset({ snapshot }) {
        if (!options.expires) return judge.fail('identity', `${name} was reset, although nothing expires here`)
        options.startedOver()
        const uids = snapshot as readonly number[]
        // It may hold more than the position says, so that none of it counts as a cause of what this device writes.
        for (const uid of uids) startedOver.add(uid)
        judge.startedOver(name, uids)
      },
    }
  }

  function start(): void {
    if (process !== null && !process.crashed) return
    const by = sim.process()
    process = by
    life += 1
    const mine = life
    known = [...durable]
    declared = 0
    const staged: number[] = []
    const { regions, room } = options
    createStreamClient({
      room,
      regions: [region, ...regions.filter((each) => each !== region)],
      transport: network.transport(name, by),
      storage: reached(by, staged),
      receiver: receiverOf(by, mine, staged),
      mode,
      runtime: by.runtime,
      bounds,
      onIdentity: (_, why) => judge.fail('identity', `${name} had to take a new identity: ${why}`),
      onProblem: (error) => note(`${name}: ${String(error)}`),
    }).then(
      (created) => {
        if (mine === life) client = created
      },
      (error: unknown) => judge.fail('sound', String(error)),
    )
  }

  return {
    get up() {
      return process !== null && !process.crashed
    },
    get pending() {
      return client?.pending ?? 0
    },
    start,
    crash() {
      process?.crash()
      client = null
      network.cut(name, random.chance(0.5))
    },
    say: () => void say().catch((error: unknown) => judge.fail('sound', String(error))),
    move,
  }
}
