import assert from 'node:assert/strict'
import type { Counts, HybridTime, Keyed, Place } from 'onceonly/stream/parts'
import {
  compareCounts,
  compareHybrid,
  comparePlaces,
  HybridClock,
  IdempotentSender,
  KeyedSender,
  LamportClock,
  ReceiveDedup,
  SequencedReader,
  SequencedStream,
  Sequencer,
  VectorClock,
} from 'onceonly/stream/parts'

// A shared shopping list. Ann and Bob edit it on their phones; a hub passes on what they write. The parts have no I/O:
// this network is an array, which loses, repeats and swaps what is put into it.

interface Edit {
  readonly by: string
  readonly item: string
  /** What its author had seen. */
  readonly clock: Counts
  /** For people, and for the question of which of two texts wins. */
  readonly at: HybridTime
}

/** Loses every third piece, swaps the others, and repeats the last one. */
function badLine<T>(pieces: readonly T[]): readonly T[] {
  const arrived = pieces.filter((_, index) => index % 3 !== 2).reverse()
  return [...arrived, ...arrived.slice(-1)]
}

// 1. A phone writes. What is pending is sent until it is acknowledged, and a number makes a second copy harmless.

class Phone {
  readonly clock: VectorClock
  readonly sender = new IdempotentSender<Edit>()
  readonly name: string
  readonly #time: HybridClock

  constructor(name: string, wallMs: () => number) {
    this.name = name
    this.clock = new VectorClock(name)
    this.#time = new HybridClock(wallMs)
  }

  async write(item: string): Promise<Edit> {
    const edit = { by: this.name, item, clock: this.clock.send(), at: this.#time.send() }
    await this.sender.accept(edit)
    return edit
  }

  read({ clock, at }: Edit): void {
    this.clock.receive(clock)
    this.#time.receive(at)
  }
}

// 2. The hub brings each phone's edits into their order, and gives all of them one order.

class Hub {
  readonly #streams = new Map<string, SequencedStream<Edit>>()
  readonly #sequencer = new Sequencer({ epoch: 1 })
  readonly log: { readonly place: Place; readonly edit: Edit }[] = []

  /** Everything below the floor has come. */
  receive(from: string, number: number, edit: Edit): { readonly floor: number } {
    const stream = this.#streams.get(from) ?? new SequencedStream<Edit>({ expected: 1 })
    this.#streams.set(from, stream)
    const arrival = stream.receive(number, edit)
    if (arrival.kind === 'delivered') {
      for (const each of arrival.messages) this.log.push({ place: this.#sequencer.next(), edit: each })
    }
    return { floor: stream.expected }
  }
}

async function synchronise(phone: Phone, hub: Hub): Promise<number> {
  let rounds = 0
  for (; phone.sender.pending.length > 0; rounds++) {
    // Each round is a new connection: what is pending is sent again, with the same numbers.
    phone.sender.reconnected()
    for (const { number, message } of badLine(phone.sender.toSend())) {
      const { floor } = hub.receive(phone.name, number, message)
      await phone.sender.acknowledge({ floor })
    }
  }
  return rounds
}

// Bob's clock is twenty seconds behind.
let wallMs = 1_760_000_000_000
const [ann, bob] = [new Phone('ann', () => wallMs), new Phone('bob', () => wallMs - 20_000)]
const hub = new Hub()
const milk = await ann.write('milk')
for (const item of ['bread', 'salt', 'tea', 'rice']) await ann.write(item)
assert.ok((await synchronise(ann, hub)) > 1, 'the line lost something')
assert.deepEqual(
  hub.log.map(({ edit }) => edit.item),
  ['milk', 'bread', 'salt', 'tea', 'rice'],
)

// 3. Which edit knew of which? Bob reads the first, and answers it; Ann writes on without having read Bob's.

bob.read(milk)
wallMs += 1_000
const oatMilk = await bob.write('milk: oat')
const wholeMilk = await ann.write('milk: whole')
assert.equal(compareCounts(milk.clock, oatMilk.clock), 'before')
assert.equal(compareCounts(oatMilk.clock, wholeMilk.clock), 'concurrent')
// Bob's wall clock is behind, but his answer is not older than what he answered.
assert.ok(compareHybrid(milk.at, oatMilk.at) < 0)
// Of two at the same time the later one wins, on every phone: by the time, and by the name where that is the same.
const wins = (a: Edit, b: Edit) => compareHybrid(a.at, b.at) || (a.by < b.by ? -1 : 1)
assert.equal([wholeMilk, oatMilk].sort(wins).at(-1)?.item, 'milk: whole')
await synchronise(bob, hub)
await synchronise(ann, hub)

// A Lamport clock says less, with one number: a cause has the smaller one. It is enough to sort a log of several machines.
const [phoneTime, hubTime] = [new LamportClock(), new LamportClock()]
const lines = [{ time: phoneTime.send(), text: 'phone: sent' }]
lines.unshift({ time: hubTime.receive(phoneTime.time), text: 'hub: received' })
assert.deepEqual(
  lines.sort((a, b) => a.time - b.time).map(({ text }) => text),
  ['phone: sent', 'hub: received'],
)

// 4. Reading in the one order. A hub that replaces the first continues its numbers in a later epoch; what the old one still
// says is passed over.

const reader = new SequencedReader()
const shown: string[] = []
for (const { place, edit } of [...hub.log].sort((a, b) => comparePlaces(a.place, b.place))) {
  if (reader.look(place) !== 'next') continue
  reader.take(place)
  shown.push(edit.item)
}
assert.deepEqual(shown.slice(-2), ['milk: oat', 'milk: whole'])
const successor = new Sequencer({ epoch: 2, next: hub.log.length })
const first = successor.next()
assert.equal(reader.look(first), 'next')
reader.take(first)
assert.equal(reader.look({ epoch: 1, place: shown.length }), 'old')

// 5. Orders to the shop need no order among themselves: each has a random key, and the shop charges once for a key.

const orders = new KeyedSender<{ readonly item: string; readonly cents: number }>()
const charges = new ReceiveDedup<{ readonly receipt: number }>({ nowMs: () => performance.now() })
let charged = 0
const shop = ({ key, message }: Keyed<{ readonly item: string; readonly cents: number }>) =>
  charges.process(key, () => ({ receipt: (charged += message.cents) }))

await orders.send({ item: 'milk', cents: 120 })
await orders.send({ item: 'bread', cents: 380 })
await orders.send({ item: 'salt', cents: 90 })
while (orders.pending > 0) {
  for (const pending of badLine(orders.retryPending())) {
    await shop(pending)
    await orders.acknowledge(pending.key)
  }
}
assert.equal(charged, 590)
console.log(`${shown.length} edits in one order, ${charged} cents charged`)
