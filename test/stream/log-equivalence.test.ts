import assert from 'node:assert/strict'
import { createRuntime } from '../../src/ledger/runtime.ts'
import { createSqlRoomLog } from '../../src/stream/log-sql.ts'
import { createMemoryRoomLog } from '../../src/stream/memory-log.ts'
import type { ExchangedEntry, RoomLog, SendRequest } from '../../src/stream/ports.ts'
import { createRandom, type Random } from '../../src/testing/random.ts'
import { onEverySqlStore } from './stores.ts'

/** The shortest base-36 text that the epoch of a log is cut from, so that memory and SQL name their logs alike. */
const EPOCH = 100_000
const runtime = { ...createRuntime(), random: () => 1 / 36 }
const call = { timeoutMs: 10_000 }
const MINUTE_MS = 60_000

onEverySqlStore(
  'a log in the store does what the log in memory does, on random histories',
  async ({ store, another }) => {
    let movedMs = 0
    const nowMs = () => Date.now() + movedMs
    const second = another()
    for (let seed = 1; seed <= 8; seed++) {
      const random = createRandom(seed)
      const room = `room-${seed}`
      // Two processes of one region take turns, as if they shared its work.
      const processes = [store, second].map((each) => createSqlRoomLog({ store: each, region: 'eu', runtime }))
      const model = createMemoryRoomLog({ region: 'eu', epoch: EPOCH, nowMs })
      const peer = createMemoryRoomLog({ region: 'us', nowMs })
      const history = createHistory(random, room, peer)
      for (let step = 0; step < 25; step++) {
        const log = random.pick(processes)
        if (random.chance(0.1)) {
          const ms = random.pick([MINUTE_MS, 6 * MINUTE_MS])
          movedMs += ms
          await store.clock.advance(ms, call)
        }
        const ask = await history.next()
        const [got, wanted] = [await answered(ask(log)), await answered(ask(model))]
        assert.deepEqual(got, wanted, `seed ${seed}, step ${step}`)
      }
      assert.deepEqual(await stateOf(processes[0], room), await stateOf(model, room), `seed ${seed}, in the end`)
    }
  },
)

async function stateOf(log: RoomLog | undefined, room: string): Promise<unknown> {
  assert.ok(log)
  const image = await log.image(room)
  const senders = image.senders.toSorted((a, b) => (a.client + a.epoch < b.client + b.epoch ? -1 : 1))
  return plain({ ...(await log.open(room)), image: { ...image, senders }, entries: await log.read(room, 0, WHOLE) })
}

const WHOLE = { entries: 1_000, bytes: 1_000_000 }

async function answered(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(plain, (error: unknown) => ({ error: (error as { code?: string }).code }))
}

/** Without the clock's reading, which differs by a few milliseconds. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, member: unknown) => (key === 'acceptedAtMs' ? 0 : member)))
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
    return {
      client,
      epoch: 1,
      cseq,
      generation,
      seen: { 'us.1': merged },
      replyTo,
      body: { text },
      digest: encodeURIComponent(text),
    }
  }

  /** The peer takes messages of its own, and some that were also sent here. */
  async function fromPeer(): Promise<readonly ExchangedEntry[]> {
    const client = random.pick([...clients, 'dan'])
    const { floor } = (await peer.sender(room, client, 1)) ?? { floor: 1 }
    await peer.enter(room, { client, epoch: 1, generation: floor, instance: 'there' })
    const body = { text: `${client} ${floor}` }
    const written = { client, epoch: 1, cseq: floor, generation: floor, seen: {}, replyTo: null, body }
    await peer.write(room, { merged: [], sends: [{ ...written, digest: encodeURIComponent(body.text) }] })
    const all = await peer.read(room, merged, WHOLE)
    merged += all.length
    return all.map(({ at: _at, copy: _copy, ...entry }) => entry)
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
      const dice = random.below(10)
      if (dice < 5) return write()
      if (dice < 7) {
        const client = random.pick(clients)
        const generation = Math.max(1, (generations.get(client) ?? 0) + random.pick([1, 1, 1, 0, -1]))
        const claim = { client, epoch: 1, generation, instance: random.pick(['tab 1', 'tab 2']) }
        generations.set(client, Math.max(generation, generations.get(client) ?? 0))
        return (log) => log.enter(room, claim)
      }
      if (dice === 7) {
        const position = { 'us.1': random.below(merged + 2), [`eu.${EPOCH}`]: random.below(12) }
        return (log) => log.find(room, position)
      }
      if (dice === 8) {
        const keep = { olderThanMs: 5 * MINUTE_MS, mostEntries: random.pick([3, 10, 100]), clientsMs: 11 * MINUTE_MS }
        return (log) => log.trim(room, keep)
      }
      const after = random.below(8)
      const bound = { entries: 1 + random.below(5), bytes: 1_000_000 }
      return random.chance(0.5) ? (log) => log.read(room, after, bound) : (log) => log.open(room)
    },
  }
}
