import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Caused } from '../parts/causal.ts'
import { CausalBuffer } from '../parts/causal.ts'
import type { Counts } from '../parts/count.ts'
import { Ranges } from '../parts/ranges.ts'
import type { LogEntry } from '../parts/regions.ts'
import { RegionMerge } from '../parts/regions.ts'
import { SequencedStream } from '../parts/sequenced.ts'
import { comparePlaces, SequencedReader, Sequencer } from '../parts/sequencer.ts'
import { compareCounts } from '../parts/vector.ts'

test('a sequenced stream delivers in order, once, whatever comes how often', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 200 }), (arrivals) => {
      const stream = new SequencedStream<number>()
      const delivered = arrivals.flatMap((number) => {
        const arrival = stream.receive(number, number)
        return arrival.kind === 'delivered' ? arrival.messages : []
      })
      const complete = Array.from({ length: 21 }, (_, number) => number)
      const missing = complete.find((number) => !arrivals.includes(number)) ?? 21
      assert.deepEqual(delivered, complete.slice(0, missing))
    }),
  )
})

test('a sequenced stream names its gap, and refuses when it is full', () => {
  const stream = new SequencedStream<string>({ mostBuffered: 2 })
  assert.deepEqual(stream.receive(2, 'c'), { kind: 'buffered', missing: { from: 0, to: 1 } })
  assert.deepEqual(stream.receive(2, 'c'), { kind: 'dropped' })
  assert.equal(stream.receive(5, 'f').kind, 'buffered')
  assert.deepEqual(stream.receive(7, 'h'), { kind: 'refused', missing: { from: 0, to: 7 } })
  assert.deepEqual(stream.receive(0, 'a'), { kind: 'delivered', messages: ['a'] })
  assert.deepEqual(stream.receive(1, 'b'), { kind: 'delivered', messages: ['b', 'c'] })
  assert.deepEqual(stream.gap, { from: 3, to: 4 })
  assert.deepEqual(stream.receive(0, 'a'), { kind: 'dropped' })
  assert.throws(
    () => stream.receive(-1, ''),
    (error) => isOnceError(error, 'bad_input'),
  )
})

test('undefined is a message like any other', () => {
  const stream = new SequencedStream<undefined>()
  stream.receive(1, undefined)
  assert.deepEqual(stream.receive(0, undefined), { kind: 'delivered', messages: [undefined, undefined] })
})

test('ranges are a set, whatever the order of its members', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(30)), fc.nat(10), (numbers, floor) => {
      const ranges = new Ranges()
      const set = new Set<number>()
      for (const [index, number] of numbers.entries()) {
        assert.equal(ranges.add(number), !set.has(number))
        set.add(number)
        if (index === 5) {
          ranges.addBelow(floor)
          for (let each = 0; each < floor; each++) set.add(each)
        }
      }
      for (let number = 0; number < 40; number++) assert.equal(ranges.has(number), set.has(number), `${number}`)
      const touching = ranges.above.some(
        ([from], index) => from <= (ranges.above[index - 1]?.[1] ?? ranges.floor) + (index === 0 ? 0 : 1),
      )
      assert.ok(!touching)
    }),
  )
})

/** A conversation of several clients: each message names what its sender had received before. */
const conversation = fc
  .array(fc.record({ sender: fc.nat(3), receives: fc.array(fc.nat(1_000), { maxLength: 6 }) }), { maxLength: 25 })
  .map((turns) => {
    const people = Array.from({ length: 4 }, () => new CausalBuffer<number>())
    const sent: Caused<number>[] = []
    for (const { sender, receives } of turns) {
      const me = people[sender] as CausalBuffer<number>
      for (const each of receives) if (sent.length > 0) me.receive(sent[each % sent.length] as Caused<number>)
      const name = `p${sender}`
      const clock = { ...me.delivered, [name]: (me.delivered[name] ?? 0) + 1 }
      const caused = { sender: name, clock, message: sent.length }
      me.receive(caused)
      sent.push(caused)
    }
    return sent
  })

test('a causal buffer delivers everything once, and never before its causes', () => {
  fc.assert(
    fc.property(conversation, fc.array(fc.nat(1_000)), fc.infiniteStream(fc.nat(1_000)), (sent, again, chance) => {
      const arrivals = [
        ...sent,
        ...again.flatMap((each) => (sent.length === 0 ? [] : [sent[each % sent.length] as Caused<number>])),
      ]
      const order = arrivals
        .map((caused) => ({ caused, at: chance.next().value as number }))
        .sort((a, b) => a.at - b.at)
      const buffer = new CausalBuffer<number>()
      const delivered: Caused<number>[] = []
      for (const { caused } of order) {
        const arrival = buffer.receive(caused)
        if (arrival.kind === 'delivered') delivered.push(...arrival.messages)
        else if (arrival.kind === 'buffered') assert.notDeepEqual(arrival.missing, {})
      }
      assert.deepEqual(new Set(delivered.map(({ message }) => message)), new Set(sent.map(({ message }) => message)))
      assert.equal(delivered.length, sent.length)
      assert.equal(buffer.buffered, 0)
      for (const [index, later] of delivered.entries()) {
        for (const earlier of delivered.slice(0, index))
          assert.notEqual(compareCounts(earlier.clock, later.clock), 'after')
      }
    }),
  )
})

test('a reply is never shown before what it replies to; the buffer says what it waits for', () => {
  const buffer = new CausalBuffer<string>({ mostBuffered: 1 })
  const reply = { sender: 'bob', clock: { ann: 1, bob: 1 }, message: 'yes' }
  assert.deepEqual(buffer.receive(reply), { kind: 'buffered', missing: { ann: 1 } })
  assert.deepEqual(buffer.missing, { ann: 1 })
  assert.equal(buffer.receive({ sender: 'eve', clock: { ann: 2, eve: 1 }, message: 'no' }).kind, 'refused')
  const arrival = buffer.receive({ sender: 'ann', clock: { ann: 1 }, message: 'tea?' })
  assert.ok(arrival.kind === 'delivered')
  assert.deepEqual(
    arrival.messages.map(({ message }) => message),
    ['tea?', 'yes'],
  )
  assert.throws(
    () => buffer.receive({ sender: 'ann', clock: {}, message: '' }),
    (error) => isOnceError(error, 'bad_input'),
  )
})

test('regions merge each other’s logs in causal order, and a second copy is marked everywhere', () => {
  const entry = (region: string, number: number, context: Counts, identity: string): LogEntry<string> => ({
    region,
    number,
    context,
    identity,
    message: identity,
  })
  const logs = [
    entry('eu', 1, {}, 'question'),
    entry('us', 1, { eu: 1 }, 'answer'),
    entry('us', 2, { eu: 1 }, 'moved'),
    entry('eu', 2, {}, 'moved'),
    entry('ap', 1, { us: 2 }, 'thanks'),
  ]
  fc.assert(
    fc.property(fc.shuffledSubarray(logs, { minLength: logs.length }), (order) => {
      const merge = new RegionMerge<string>()
      const shown: string[] = []
      for (const each of order) {
        const arrival = merge.receive(each)
        if (arrival.kind === 'delivered')
          shown.push(...arrival.entries.filter(({ copy }) => !copy).map(({ message }) => message))
      }
      assert.equal(shown.length, 4)
      assert.ok(shown.indexOf('question') < shown.indexOf('answer'))
      assert.ok(shown.indexOf('moved') < shown.indexOf('thanks'))
      assert.deepEqual(merge.merged, { eu: 2, us: 2, ap: 1 })
    }),
  )
})

test('a sequencer that was replaced gives out nothing more, and its places are old', () => {
  const first = new Sequencer({ epoch: 1 })
  const reader = new SequencedReader()
  const [a, b] = [first.next(), first.next()]
  assert.equal(reader.look(b), 'early')
  reader.take(a)
  assert.equal(reader.look(a), 'old')
  const second = new Sequencer({ epoch: 2, next: 1 })
  first.fence(2)
  assert.throws(
    () => first.next(),
    (error) => isOnceError(error, 'lease_lost'),
  )
  const c = second.next()
  reader.take(c)
  assert.equal(reader.look(b), 'old')
  assert.ok(comparePlaces(b, c) < 0)
})
