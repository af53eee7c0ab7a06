import { createRuntime } from '../../../src/runtime/runtime.ts'
import { createMemoryRoomLog } from '../../../src/streams/log/memory-log.ts'
import type { ExchangedEntry, RoomImage, RoomLog, SendRequest } from '../../../src/streams/ports.ts'
import { createRandom, type Random } from '../../../src/testing/random.ts'

/** The shortest base-36 text that the epoch of a log is cut from, so that memory and SQL name their logs alike. */
const EPOCH = 100_000
export const sameNames = { ...createRuntime(), random: () => 1 / 36 }
const MINUTE_MS = 60_000
const STEPS = 25
const published = { epoch: 1, cseq: 1, generation: null, seen: {}, replyTo: null }
const WHOLE = { entries: 1_000, bytes: 1_000_000 }

export interface ComparedLogs {
  /** Processes of one region, which take turns as if they shared its work. */
  readonly processes: readonly RoomLog[]
  /** Of their store and of the model. */
  readonly clock: { nowMs(): number; advance(ms: number): Promise<void> }
  readonly seed: number
}

/** Null when they answered as the log in memory does on this history, else where they did not. */
export async function compareLogs({ processes, clock, seed }: ComparedLogs): Promise<string | null> {
  const random = createRandom(seed)
  const room = `room-${seed}`
  const { nowMs } = clock
  const model = createMemoryRoomLog({ region: 'eu', epoch: EPOCH, nowMs })
  const history = createHistory(random, room, createMemoryRoomLog({ region: 'us', nowMs }))
  for (let step = 0; step < STEPS; step++) {
    const log = random.pick(processes)
    if (random.chance(0.1)) await clock.advance(random.pick([MINUTE_MS, 6 * MINUTE_MS]))
    const ask = await history.next()
    const difference = differs(await answered(ask(log)), await answered(ask(model)))
    if (difference !== null) return `seed ${seed}, step ${step}: ${difference}`
  }
  const [first] = processes
  if (first === undefined) return 'there is no log'
  const difference = differs(await stateOf(first, room), await stateOf(model, room))
  return difference === null ? null : `seed ${seed}, in the end: ${difference}`
}

function differs(got: string, wanted: string): string | null {
  return got === wanted ? null : `${got} is not ${wanted}`
}

async function stateOf(log: RoomLog, room: string): Promise<string> {
  const image = sorted(await log.image(room))
  return plain({ ...(await log.open(room)), image, entries: await log.read(room, 0, WHOLE) })
}

function sorted(image: RoomImage): RoomImage {
  return {
    ...image,
    senders: image.senders.toSorted((a, b) => (a.client + a.epoch < b.client + b.epoch ? -1 : 1)),
    published: image.published.toSorted((a, b) => (a.client < b.client ? -1 : 1)),
  }
}

async function answered(asked: Promise<unknown>): Promise<string> {
  return asked.then(plain, (error: unknown) => `error ${String((error as { code?: string }).code)}`)
}

/** With members in one order, and without the clock's reading, which differs by a few milliseconds. */
function plain(value: unknown): string {
  return (
    JSON.stringify(value, (key, member: unknown) => {
      if (key === 'acceptedAtMs') return 0
      if (typeof member !== 'object' || member === null || Array.isArray(member)) return member
      return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
    }) ?? 'nothing'
  )
}

/** What clients and a peer might do to a room; the same question is put to both logs. */
function createHistory(random: Random, room: string, peer: RoomLog) {
  const generations = new Map<string, number>()
  const numbers = new Map<string, number>()
  let merged = 0
  const clients = ['ann', 'bob', 'cy']

  function send(client: string, cseq: number, text: string): SendRequest {
    const generation = (generations.get(client) ?? 1) - (random.chance(0.05) ? 1 : 0)
    const replyTo = random.chance(0.3) ? { client: 'ann', epoch: 1, cseq: 1 } : null
    // Now and then it is a server: it needs no session.
    if (random.chance(0.1)) {
      const name = `pub~server~${random.below(3)}`
      return { ...published, client: name, body: { text }, digest: encodeURIComponent(text) }
    }
    return {
      client,
      epoch: 1,
      cseq,
      generation,
      seen: { 'us.1': merged },
      replyTo,
      body: { text },
      ...(random.chance(0.2) ? { writtenAtMs: cseq } : {}),
      digest: encodeURIComponent(text),
    }
  }

  /** The peer takes messages of its own, and some that were also sent here. */
  async function fromPeer(): Promise<readonly ExchangedEntry[]> {
    const client = random.pick([...clients, ...clients, 'dan'])
    const { floor } = (await peer.sender(room, client, 1)) ?? { floor: 1 }
    await peer.enter(room, { client, epoch: 1, generation: floor, instance: 'there' })
    // Now and then a clone of the client said something else there.
    const body = { text: random.chance(0.2) ? 'something else' : `${client} ${floor}` }
    const written = { client, epoch: 1, cseq: floor, generation: floor, seen: {}, replyTo: null, body }
    await peer.write(room, { merged: [], sends: [{ ...written, digest: encodeURIComponent(body.text) }] })
    if (random.chance(0.3)) {
      const client = `pub~server~${random.below(3)}`
      await peer.write(room, { merged: [], sends: [{ ...published, client, body: 'theirs', digest: 'theirs' }] })
    }
    // Some are repeated, and sometimes the next one is missing: then nothing of the write is taken.
    const again = random.chance(0.3) ? random.below(4) : 0
    const all = await peer.read(room, Math.max(0, merged - again), WHOLE)
    const entries = all.map(({ at: _at, copy: _copy, ...entry }) => entry)
    if (random.chance(0.25)) return entries.filter(({ n }) => n > merged + 1)
    merged = Math.max(merged, entries.at(-1)?.n ?? 0)
    return entries
  }

  /** What the peer would give to a region that cannot go back as far; it says something about this region's log, too. */
  async function adopt(): Promise<(log: RoomLog) => Promise<unknown>> {
    const { position, ...known } = await peer.image(room)
    merged = Math.max(merged, position['us.1'] ?? 0)
    const image = { position: { ...position, [`eu.${EPOCH}`]: 99 }, ...known }
    return async (log) => {
      await log.adopt(room, image)
      return log.image(room).then(sorted)
    }
  }

  async function write(): Promise<(log: RoomLog) => Promise<unknown>> {
    const entries = random.chance(0.5) ? await fromPeer() : []
    const sends: SendRequest[] = []
    for (let count = random.below(5); count > 0; count--) {
      const client = random.pick(clients)
      const next = (numbers.get(client) ?? 0) + 1
      const cseq = Math.max(1, next - (random.chance(0.3) ? random.below(4) : 0) + (random.chance(0.05) ? 1 : 0))
      numbers.set(client, Math.max(next - 1, Math.min(cseq, next)))
      sends.push(send(client, cseq, random.chance(0.1) ? 'another text \u0000' : `${client} ${cseq}`))
    }
    return (log) => log.write(room, { merged: entries, sends })
  }

  return {
    async next(): Promise<(log: RoomLog) => Promise<unknown>> {
      const newcomer = clients.find((client) => !generations.has(client))
      if (newcomer !== undefined) {
        generations.set(newcomer, 1)
        return (log) => log.enter(room, { client: newcomer, epoch: 1, generation: 1, instance: 'tab 1' })
      }
      const dice = random.below(10)
      if (dice < 5) return random.chance(0.15) ? adopt() : write()
      if (dice < 7) {
        const client = random.pick(clients)
        const generation = Math.max(1, (generations.get(client) ?? 0) + random.pick([1, 1, 0, -1]))
        const claim = { client, epoch: 1, generation, instance: random.pick(['tab 1', 'tab 2']) }
        generations.set(client, Math.max(generation, generations.get(client) ?? 0))
        return (log) => log.enter(room, claim)
      }
      if (dice === 7) {
        const position = { 'us.1': random.below(merged + 2), [`eu.${EPOCH}`]: random.below(12) }
        return (log) => log.find(room, position)
      }
      if (dice === 8) {
        const mostEntries = random.pick([3, 10, 100])
        const recognised = { clientsMs: 11 * MINUTE_MS, publishedMs: 9.5 * MINUTE_MS, mostPublished: 1_000 }
        const keep = { olderThanMs: 5 * MINUTE_MS, mostEntries, ...recognised }
        return (log) => log.trim(room, keep)
      }
      const after = random.below(8)
      const bound = { entries: 1 + random.below(5), bytes: 1_000_000 }
      return random.chance(0.5) ? (log) => log.read(room, after, bound) : (log) => log.open(room)
    },
  }
}
