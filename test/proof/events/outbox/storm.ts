import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { SqlStore } from 'onceonly'
import { createLedger } from 'onceonly'
import type { IncomingMessage } from 'onceonly/inbox'
import { createInbox } from 'onceonly/inbox'
import type { Outbox } from 'onceonly/outbox'
import { createOutbox } from 'onceonly/outbox'
import { until } from '../../../../src/testing/until.ts'
import type { Child } from '../../../support/crew.ts'
import type { Place } from '../../../support/place.ts'
import { sqlStore } from '../../../support/place.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import type { BrokerAddress, OpenBroker } from './broker.ts'
import { openBroker } from './broker.ts'

export interface Storm {
  readonly rows: number
  readonly broker: BrokerAddress
  readonly leaseMs: number
  /** Called as rows arrive, so that the caller can cause faults in the middle of the storm. */
  harm(relays: readonly Child[], arrived: number): Promise<void> | void
  /** The last rows are written after it, so that the storm is not over before its harm is done. */
  readonly harmed?: Promise<void>
  readonly progress?: (arrived: number) => void
  /**
   * Through an ordered inbox: a broker that loses a node delivers again what was under way, and so in another order. Otherwise
   * the subscription itself must keep it.
   */
  readonly ordered?: boolean
  /** A pause of each writer after a commit, so that rows are written for as long as the harm takes. */
  readonly restMs?: number
  /** How long without any arrival means that rows are lost. */
  readonly patienceMs?: number
}

export interface StormFigures {
  readonly rows: number
  readonly copies: number
  readonly seconds: number
}

const TOPIC = 'storm.row'
const ROWS_PER_COMMIT = 25
const KEYS = 150
const RELAYS = 3
const TRANSACTION = { timeoutMs: 30_000, lockMs: 20_000, refuseTwinOf: null }

/**
 * Transactions that commit and some that roll back, three relays in processes of their own, and a consumer that
 * remembers ids as an inbox does. In the end every committed row has arrived, none that was rolled back has, and the
 * first copies of every key came in its order.
 */
export async function runStorm(place: Place, storm: Storm): Promise<StormFigures> {
  const startedMs = performance.now()
  const store = sqlStore(place.store)
  const outbox = createOutbox({ ledger: quietLedger(store) })
  await outbox.prepare()
  const book = createBook()
  const broker = await openBroker(storm.broker, sqlStore(place.another()))
  const subscription = await (storm.ordered === true ? throughInbox : directly)(place, broker, book)
  const task = { address: place.address, broker: storm.broker, leaseMs: storm.leaseMs }
  const file = import.meta.resolve('./relay-worker.ts')
  const relays: Child[] = []
  let living = 0
  let over = false
  const start = () => {
    const relay = place.crew.start({ file, task })
    relays.push(relay)
    living += 1
    // A child of a test is ended after some minutes; a longer storm continues with another one.
    void relay.ended.then(() => {
      living -= 1
      if (living === 0 && !over) start()
    })
  }
  for (let n = 0; n < RELAYS; n++) start()

  const writing = writeRows(store, outbox, storm)
  let harmed = Promise.resolve()
  const watch = setInterval(() => {
    harmed = harmed.then(() => storm.harm(relays, book.first.size))
    storm.progress?.(book.first.size)
  }, 50)
  const committed = await writing
  await settled(book, committed.size, storm.patienceMs ?? 120_000)
  over = true
  clearInterval(watch)
  await harmed
  book.check(committed)
  await until('no message waits any more', async () => (await outbox.status()).pending === 0)
  assert.equal(await outbox.deadLetters.count(), 0)
  await subscription.stop()
  await broker.stop()
  const seconds = (performance.now() - startedMs) / 1_000
  return { rows: committed.size, copies: book.copies(), seconds: Math.round(seconds * 10) / 10 }
}

interface Consuming {
  stop(): Promise<void>
}

async function directly(_place: Place, broker: OpenBroker, book: Book): Promise<Consuming> {
  return await broker.subscribe({ consumer: 'storm', topics: [TOPIC], concurrency: 64 }, async (message) => {
    book.write(message)
    return { kind: 'done' }
  })
}

async function throughInbox(place: Place, broker: OpenBroker, book: Book): Promise<Consuming> {
  const ledger = createLedger({ store: sqlStore(place.another()) })
  const inbox = createInbox({ ledger, consumer: 'storm', ordered: true })
  await inbox.consume(broker, { topics: [TOPIC], concurrency: 64 }, async (_body, { message }) => book.write(message))
  const stop = async () => {
    await inbox.stop()
    await ledger.stop()
  }
  return { stop }
}

/** Until everything has arrived, or nothing has for so long. */
async function settled(book: Book, wanted: number, patienceMs: number): Promise<void> {
  let arrived = book.first.size
  let sinceMs = performance.now()
  while (book.first.size < wanted) {
    if (book.first.size > arrived) {
      arrived = book.first.size
      sinceMs = performance.now()
    }
    if (performance.now() - sinceMs > patienceMs)
      throw new Error(`${wanted - arrived} of ${wanted} rows did not arrive`)
    await new Promise((resolve) => void setTimeout(resolve, 50))
  }
}

async function writeRows(
  store: SqlStore,
  outbox: Outbox,
  { rows, harmed, restMs = 0 }: Storm,
): Promise<ReadonlySet<string>> {
  const committed = new Set<string>()
  const commits = Array.from({ length: Math.ceil(rows / ROWS_PER_COMMIT) }, (_, n) => n)
  const writer = async () => {
    for (let n = commits.shift(); n !== undefined; n = commits.shift()) {
      if (commits.length === 0) await harmed
      if (restMs > 0) await pause(restMs)
      const undone = n % 10 === 9
      const ids = Array.from({ length: ROWS_PER_COMMIT }, (_, m) => `${undone ? 'undone' : 'row'}-${n}-${m}`)
      const work = store.transactions.run(async ({ tx }) => {
        // In the order of the keys, so that two transactions never wait for each other in a circle.
        for (const [m, id] of ids.entries()) {
          const key = m % 5 === 4 ? {} : { key: `k-${String((n % 6) * 25 + m).padStart(3, '0')}` }
          await outbox.add(tx, { id, topic: TOPIC, ...key, body: { n, m } })
        }
        if (undone) throw new Undone()
      }, TRANSACTION)
      await work.then(
        () => {
          for (const id of ids) committed.add(id)
        },
        (error: unknown) => {
          if (!(error instanceof Undone)) throw error
        },
      )
    }
  }
  assert.ok(KEYS >= 6 * ROWS_PER_COMMIT)
  await Promise.all([writer(), writer(), writer(), writer()])
  return committed
}

class Undone extends Error {}

interface Book {
  /** The first copy of each message, in the order of arrival. */
  readonly first: ReadonlyMap<string, IncomingMessage>
  write(message: IncomingMessage): void
  copies(): number
  check(committed: ReadonlySet<string>): void
}

function createBook(): Book {
  const first = new Map<string, IncomingMessage>()
  let copies = 0
  return {
    first,
    write(message) {
      if (first.has(message.id)) copies += 1
      else first.set(message.id, message)
    },
    copies: () => copies,
    check(committed) {
      const strange = [...first.keys()].filter((id) => !committed.has(id))
      assert.deepEqual(strange, [], 'what was rolled back arrived')
      assert.equal(first.size, committed.size)
      const keyed = [...first.values()].filter(({ key }) => key !== null)
      for (const [key, messages] of Map.groupBy(keyed, (message) => message.key)) {
        const numbers = messages.map(({ sequence }) => sequence)
        assert.deepEqual(
          numbers,
          [...numbers.keys()].map((index) => index + 1),
          `the order of ${key}`,
        )
      }
    },
  }
}
