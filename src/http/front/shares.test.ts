import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { createShares, type Shares } from './shares.ts'

/** Takes what a key can get, and returns how much that was. */
function takeAll(shares: Shares, key: string): number {
  let taken = 0
  while (shares.enter(key)) taken++
  return taken
}

function leaveAll(shares: Shares, key: string, count: number): void {
  for (let n = 0; n < count; n++) shares.leave(key)
}

test('one key alone gets its share, and a new key always finds places', () => {
  const shares = createShares({ most: () => 1_000, share: 0.75 })
  const flood = takeAll(shares, 'flood')
  assert.equal(flood, 750)
  const second = takeAll(shares, 'second')
  assert.ok(second > 150, `${second}`)
  assert.ok(shares.enter('quiet'))
  shares.leave('quiet')
  leaveAll(shares, 'flood', 100)
  assert.equal(shares.enter('flood'), false, 'it had more than its share beside the second')
  leaveAll(shares, 'second', second)
  leaveAll(shares, 'flood', flood - 100)
  assert.equal(shares.underWay, 0)
  assert.equal(takeAll(shares, 'flood'), 750)
})

test('a single place goes to the first key, and a lowered limit is kept', () => {
  let most = 1
  const shares = createShares({ most: () => most, share: 0.75 })
  assert.equal(takeAll(shares, 'a'), 1)
  assert.equal(shares.enter('b'), false)
  shares.leave('a')
  most = 0
  assert.equal(shares.enter('b'), false)
})

test('a lowered limit lets in keys that have less than their equal part', () => {
  let most = 100
  const shares = createShares({ most: () => most, ceiling: 100, share: 0.75 })
  assert.equal(takeAll(shares, 'flood'), 75)
  most = 10
  assert.equal(shares.enter('flood'), false)
  assert.equal(takeAll(shares, 'quiet'), 3)
  for (let n = 0; n < 22; n++) assert.ok(shares.enter(`new-${n}`))
  assert.equal(shares.mayEnter('one too many'), false)
})

/** Timers that fire when a test says so. */
function heldTimers(): { readonly runtime: Runtime; fire(): void; readonly left: number } {
  const timers = new Set<() => void>()
  return {
    runtime: {
      ...createRuntime(),
      setTimer(_ms, fire) {
        timers.add(fire)
        return { cancel: () => void timers.delete(fire) }
      },
    },
    fire() {
      for (const each of timers) each()
    },
    get left() {
      return timers.size
    },
  }
}

function queueing(most: number, queueMost: number) {
  const timers = heldTimers()
  const shares = createShares({
    most: () => most,
    share: 1,
    queue: { most: queueMost, waitMs: 1_000, runtime: timers.runtime },
  })
  const calls: string[] = []
  const ask = (key: string, name: string) =>
    shares.whenFree(
      key,
      () => calls.push(name),
      () => calls.push(`${name} refused`),
    )
  return { shares, timers, calls, ask }
}

test('waiting requests are let in key by key, whatever the length of their lines', () => {
  const { shares, timers, calls, ask } = queueing(1, 10)
  ask('flood', 'f1')
  for (const name of ['f2', 'f3', 'f4']) ask('flood', name)
  ask('quiet', 'q1')
  assert.deepEqual(calls, ['f1'], 'the first begins at once')
  for (let n = 0; n < 4; n++) shares.leave(n === 2 ? 'quiet' : 'flood')
  assert.deepEqual(calls, ['f1', 'f2', 'q1', 'f3', 'f4'])
  assert.deepEqual([shares.waiting, timers.left], [0, 0])
  shares.leave('flood')
  assert.equal(shares.underWay, 0)
})

test('a later request does not overtake its own key', () => {
  const { shares, calls, ask } = queueing(1, 10)
  ask('a', 'a1')
  ask('b', 'b1')
  ask('b', 'b2')
  shares.leave('a')
  shares.leave('b')
  assert.deepEqual(calls, ['a1', 'b1', 'b2'])
  const cancel = ask('b', 'b3')
  assert.equal(shares.enter('b'), false)
  cancel()
  cancel()
  assert.equal(shares.waiting, 0)
})

test('a queue is bounded in number and in time, and a wait that was given up takes no place', () => {
  const { shares, timers, calls, ask } = queueing(1, 2)
  ask('a', 'a1')
  const leave = ask('a', 'a2')
  ask('a', 'a3')
  ask('a', 'a4')
  assert.deepEqual(calls, ['a1', 'a4 refused'])
  leave()
  timers.fire()
  assert.deepEqual(calls, ['a1', 'a4 refused', 'a3 refused'])
  shares.leave('a')
  assert.deepEqual([shares.underWay, shares.waiting, timers.left, calls.length], [0, 0, 0, 3])
})
