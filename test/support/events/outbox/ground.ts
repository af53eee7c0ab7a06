import type { OutboxMessage, SqlStore, SqlTx } from 'onceonly'
import type { Outbox, OutgoingMessage, Published, Publisher, Relay, RelayEvent, RelayOptions } from 'onceonly/outbox'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { createRuntime, type Runtime } from '../../../../src/runtime/runtime.ts'
import { until } from '../../../../src/testing/until.ts'
import type { Place } from '../../place.ts'
import { onEveryPlaceAtOnce, sqlStore } from '../../place.ts'
import { quietLedger } from '../../quiet-ledger.ts'

const TRANSACTION = { timeoutMs: 20_000, lockMs: 10_000, refuseTwinOf: null }

/** A broker in this process that a test can inspect, delay and break. */
export interface Desk extends Publisher {
  /** Everything that was confirmed, in order, copies included. */
  readonly taken: OutgoingMessage[]
  /** Called for every batch before it is answered. */
  before: (messages: readonly OutgoingMessage[]) => Promise<void>
  /** What is answered for a message; confirmed, when it says nothing. */
  verdict: (message: OutgoingMessage) => Published | null
}

function createDesk(): Desk {
  const desk: Desk = {
    name: 'desk',
    taken: [],
    before: async () => {},
    verdict: () => null,
    async publish(messages) {
      await desk.before(messages)
      const stuck = new Set<string>()
      return messages.map((message): Published => {
        const { key } = message
        if (key !== null && stuck.has(key)) return { kind: 'unavailable', reason: 'behind another' }
        const answer = desk.verdict(message) ?? { kind: 'confirmed' }
        if (answer.kind === 'confirmed') desk.taken.push(message)
        else if (key !== null) stuck.add(key)
        return answer
      })
    },
  }
  return desk
}

export interface Ground {
  readonly place: Place
  readonly store: SqlStore
  readonly outbox: Outbox
  readonly desk: Desk
  readonly events: RelayEvent[]
  /** A transaction of the user's own. */
  inTx<T>(work: (tx: SqlTx) => Promise<T>, store?: SqlStore): Promise<T>
  add(message: OutboxMessage & { readonly id?: string }): Promise<void>
  /** A relay with a store of its own, as another process has it. It ends with the test. */
  relay(options?: Partial<RelayOptions>): Relay
  /** Rows that still wait. */
  pending(): Promise<number>
  drained(): Promise<void>
}

const HURRY = 20

/** For a relay whose pauses are a twentieth of what they should be; leases last as long as ever. */
export function hurriedRuntime(): Runtime & { readonly rests: number } {
  const runtime = createRuntime()
  let rests = 0
  return {
    ...runtime,
    /** How often a lane, or the relay itself, went to rest. */
    get rests() {
      return rests
    },
    setTimer(ms, fire, background) {
      if (!background) rests++
      return runtime.setTimer(ms / HURRY, fire, background)
    },
  }
}

/** The same test on both SQL stores. */
export function onOutbox(title: string, body: (ground: Ground) => Promise<void>): void {
  onEveryPlaceAtOnce(title, async (place) => {
    const store = sqlStore(place.store)
    const outbox = createOutbox({ ledger: quietLedger(store) })
    await outbox.prepare()
    const desk = createDesk()
    const events: RelayEvent[] = []
    const relays: Relay[] = []
    const inTx: Ground['inTx'] = (work, on = store) => on.transactions.run(({ tx }) => work(tx), TRANSACTION)
    const pending = async () => (await outbox.status()).pending
    const ground: Ground = {
      place,
      store,
      outbox,
      desk,
      events,
      inTx,
      add: (message) => inTx((tx) => outbox.add(tx, message)),
      relay(options = {}) {
        const relay = createRelay({
          ledger: quietLedger(sqlStore(place.another())),
          publisher: desk,
          on: (event) => events.push(event),
          backoff: { baseMs: 5, capMs: 20 },
          ...options,
        })
        relays.push(relay)
        return relay
      },
      pending,
      drained: async () => void (await until('no message waits any more', pending, (left) => left === 0)),
    }
    try {
      await body(ground)
    } finally {
      await Promise.all(relays.map((relay) => relay.stop()))
    }
  })
}

export function many<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n))
}

/** The numbers of each key, in the order in which they came, copies left out. */
export function sequences(messages: readonly OutgoingMessage[]): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>()
  const seen = new Set<string>()
  for (const { id, key, sequence } of messages) {
    if (key === null || sequence === null || seen.has(id)) continue
    seen.add(id)
    found.set(key, [...(found.get(key) ?? []), sequence])
  }
  return found
}
