import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from '../../ledger/core/errors.ts'
import { ReceiveDedup } from './dedup.ts'
import type { DeliveryStorage } from './delivery.ts'
import { Delivery } from './delivery.ts'
import type { Pending, PendingStorage } from './sender.ts'
import { IdempotentSender } from './sender.ts'
import { SequenceDedup } from './sequence-dedup.ts'
import { fromShiViz, toShiViz } from './shiviz.ts'

test('copies get the first result until it expires, and copies at the same time share one run', async () => {
  let nowMs = 0
  let runs = 0
  const dedup = new ReceiveDedup<number>({ nowMs: () => nowMs })
  const effect = async () => ++runs
  const both = await Promise.all([dedup.process('k', effect), dedup.process('k', effect)])
  assert.deepEqual(both, [
    { result: 1, duplicate: false },
    { result: 1, duplicate: true },
  ])
  nowMs = 5 * 60_000 - 1
  assert.deepEqual(await dedup.process('k', effect), { result: 1, duplicate: true })
  nowMs += 1
  assert.deepEqual(await dedup.process('k', effect), { result: 2, duplicate: false })
})

test('an effect that throws is forgotten; another body under the same key is a fork', async () => {
  const dedup = new ReceiveDedup<string>({ nowMs: () => 0 })
  const failing = dedup.process('k', () => {
    throw new Error('not now')
  })
  await assert.rejects(failing, /not now/)
  assert.equal(dedup.size, 0)
  await dedup.process('k', () => 'first', 'body-1')
  await assert.rejects(
    dedup.process('k', () => 'second', 'body-2'),
    (error) => isOnceError(error, 'key_reused'),
  )
  assert.deepEqual(await dedup.process('k', () => 'third', 'body-1'), { result: 'first', duplicate: true })
})

test('what is remembered stays within its bound, and clean-up keeps up by itself', async () => {
  let nowMs = 0
  const evicted: string[] = []
  const onEvict = (key: string) => void evicted.push(key)
  const dedup = new ReceiveDedup<number>({ nowMs: () => nowMs, ttlMs: 10, mostKeys: 50, onEvict })
  for (let key = 0; key < 500; key++) await dedup.process(`${key}`, () => key)
  assert.ok(dedup.size <= 51, `${dedup.size}`)
  assert.deepEqual(
    evicted,
    Array.from({ length: 450 }, (_, key) => `${key}`),
  )
  nowMs = 1_000
  for (let key = 0; key < 20; key++) await dedup.process(`late ${key}`, () => key)
  assert.ok(dedup.size <= 21, `${dedup.size}`)
})

test('numbers of senders are remembered forever, exactly, and in little room', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.nat(50))), (arrivals) => {
      const dedup = new SequenceDedup()
      const seen = new Set<string>()
      for (const [sender, number] of arrivals) {
        const name = `${sender} ${number}`
        assert.equal(dedup.first(sender, number), !seen.has(name))
        seen.add(name)
      }
    }),
  )
  const dedup = new SequenceDedup()
  for (let number = 0; number < 100_000; number++) assert.ok(dedup.first('a', number))
  assert.deepEqual(dedup.seen('a'), { floor: 100_000, ranges: [] })
  const hostile = () => {
    for (let number = 0; number < 10_000; number += 2) dedup.first('hostile', number + 1)
  }
  assert.throws(hostile, (error) => isOnceError(error, 'bad_input'))
})

test('a sender resends what is pending, with the same numbers, within its window', async () => {
  const sender = new IdempotentSender<string>({ window: 2 })
  for (const message of ['a', 'b', 'c']) await sender.accept(message)
  const numbers = (list: readonly Pending<string>[]) => list.map(({ number }) => number)
  assert.deepEqual(numbers(sender.toSend()), [1, 2])
  assert.deepEqual(numbers(sender.toSend()), [])
  assert.deepEqual(await sender.acknowledge({ floor: 1, ranges: [[2, 2]] }), [2])
  assert.deepEqual(numbers(sender.toSend()), [])
  sender.reconnected()
  assert.deepEqual(numbers(sender.toSend()), [1])
  assert.deepEqual(await sender.acknowledge({ floor: 3 }), [1])
  assert.deepEqual(numbers(sender.toSend()), [3])
  await assert.rejects(sender.acknowledge({ floor: 9 }), (error) => isOnceError(error, 'bad_input'))
})

test('large messages leave one by one, small ones together', async () => {
  const sender = new IdempotentSender<string>({ windowBytes: 10, sizeOf: (message) => message.length })
  for (const length of [20, 4, 4, 4, 1]) await sender.accept('x'.repeat(length))
  const numbers = () => sender.toSend().map(({ number }) => number)
  assert.deepEqual([numbers(), numbers()], [[1], []])
  await sender.acknowledge({ floor: 2 })
  assert.deepEqual(numbers(), [2, 3])
  await sender.acknowledge({ floor: 2, ranges: [[3, 3]] })
  assert.deepEqual(numbers(), [4, 5])
  sender.reconnected()
  assert.deepEqual(numbers(), [2, 4, 5])
})

test('a number whose write failed is the next one’s, and a restart continues with what is pending', async () => {
  const saved = new Map<number, Pending<string>>()
  let fails = false
  const storage: PendingStorage<string> = {
    async save(pending) {
      if (fails) throw new Error('disk full')
      saved.set(pending.number, pending)
    },
    async remove(below, ranges) {
      for (const number of saved.keys()) {
        if (number < below || ranges.some(([from, to]) => from <= number && number <= to)) saved.delete(number)
      }
    },
  }
  const sender = new IdempotentSender<string>({ storage })
  await sender.accept('a')
  fails = true
  const lost = sender.accept('b')
  await assert.rejects(lost, /disk full/)
  fails = false
  assert.deepEqual(await Promise.all([sender.accept('c'), sender.accept('d')]), [
    { number: 2, message: 'c' },
    { number: 3, message: 'd' },
  ])
  await sender.acknowledge({ floor: 2 })
  const again = new IdempotentSender<string>({ storage, restored: { next: 4, pending: [...saved.values()] } })
  assert.deepEqual(
    again.toSend().map(({ message }) => message),
    ['c', 'd'],
  )
  assert.equal((await again.accept('e')).number, 4)
})

test('a sender without acknowledgements refuses more, instead of filling the memory', async () => {
  const sender = new IdempotentSender<number>({ mostPending: 3 })
  for (let each = 0; each < 3; each++) await sender.accept(each)
  await assert.rejects(sender.accept(4), (error) => isOnceError(error, 'store_busy'))
})

test('the modes differ in what a crash does', async () => {
  for (const [mode, runs] of [
    ['at-most-once', 0],
    ['at-least-once', 2],
    ['effectively-once', 1],
  ] as const) {
    const world = { position: 0, settled: new Set<string>(), effects: 0, crash: true }
    const storage: DeliveryStorage = {
      async advance(position) {
        // The first process dies right around here.
        if (mode === 'at-least-once' && world.crash) throw new Error('crash')
        world.position = position
        if (world.crash) throw new Error('crash')
      },
      async settle(key, position, effect) {
        if (world.settled.has(key)) return false
        await effect()
        world.settled.add(key)
        world.position = position
        if (world.crash) throw new Error('crash')
        return true
      },
    }
    const delivery = new Delivery(mode, storage)
    const effect = async () => void world.effects++
    await assert.rejects(delivery.deliver('m', 1, effect), /crash/)
    world.crash = false
    if (world.position < 1 || mode === 'effectively-once') await delivery.deliver('m', 1, effect)
    assert.equal(world.effects, runs, mode)
  }
})

test('a history is written as ShiViz reads it, and bad clocks are refused', () => {
  const history = [
    { host: 'ann', clock: { ann: 1 }, text: 'send\n tea?' },
    { host: 'bob', clock: { ann: 1, bob: 1 }, text: 'receive tea?' },
    { host: 'bob', clock: { ann: 1, bob: 2 }, text: 'send yes' },
  ]
  const log = toShiViz(history)
  assert.equal(log.split('\n')[0], 'ann {"ann":1}')
  assert.deepEqual(
    fromShiViz(log).map(({ clock }) => clock),
    history.map(({ clock }) => clock),
  )
  const bad = [
    'ann {"ann":2}\nx\n',
    'ann {"ann":1,"bob":1}\nx\n',
    'ann {"ann":1}\nx\nann {"ann":1}\ny\n',
    'ann {"ann":0}\nx\n',
    'ann\nx\n',
    'ann {"ann":1}\n',
    'ann {"ann":1}\nx\nbob {"ann":1,"bob":1}\ny\nbob {"bob":2}\nz\n',
  ]
  for (const each of bad)
    assert.throws(
      () => fromShiViz(each),
      (error) => isOnceError(error, 'bad_input'),
      each,
    )
  assert.throws(
    () => toShiViz([{ host: 'a b', clock: {}, text: '' }]),
    (error) => isOnceError(error, 'bad_input'),
  )
})
