import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuntime } from '../../runtime/test-runtime.ts'
import { isOnceError, OnceError } from '../core/errors.ts'
import { SECOND } from '../core/limits.ts'
import { createGroupCommit } from './group-commit.ts'
import { requestRules } from './request-group.ts'
import { watched } from './test-requests.ts'

/** A store that commits single items synchronously. `fail` makes its next synchronous commit fail. */
function syncGroup() {
  const runtime = createTestRuntime()
  const alone: string[] = []
  const flushes: string[] = []
  const seen: string[] = []
  const state: { begins: boolean; fail: OnceError | null } = { begins: true, fail: null }
  const group = createGroupCommit<string, string>(runtime, {
    lanes: 1,
    keyOf: (item) => item.slice(0, 1),
    sizeOf: () => 1,
    isSpoiled: () => false,
    isHeld: requestRules.isHeld,
    flush: (items) => {
      flushes.push(items.join(' '))
      return items.map((item) => `${item}!`)
    },
    flushNow: (item) => {
      if (!state.begins) return undefined
      alone.push(item)
      const { fail } = state
      state.fail = null
      if (fail !== null) throw fail
      return `${item}!`
    },
  })
  group.onFlush((items) => seen.push(items.join(' ')))
  /** As after the first of a single caller's writes. */
  async function warmUp(): Promise<void> {
    await group.write('first')
    await runtime.settle()
    flushes.length = 0
    seen.length = 0
  }
  const write = async (item: string) => await group.write(item)
  return { runtime, group, write, alone, flushes, seen, state, warmUp }
}

test('a single caller is answered before the call returns, once a flush had a single item', async () => {
  const { group, alone, seen, warmUp } = syncGroup()
  assert.ok(group.write('first') instanceof Promise)
  await warmUp()
  assert.equal(group.write('a1'), 'a1!')
  // The settle of the same key, and the next command of the same caller.
  assert.equal(group.write('a2'), 'a2!')
  assert.equal(group.write('b1'), 'b1!')
  assert.deepEqual(alone, ['a1', 'a2', 'b1'])
  assert.deepEqual(seen, ['a1', 'a2', 'b1'])
})

test('a burst loses one commit at most: its second key is gathered with the others', async () => {
  const { runtime, group, write, alone, flushes, warmUp } = syncGroup()
  await warmUp()
  assert.equal(group.write('a1'), 'a1!')
  const burst = ['d1', 'c1', 'b1', 'b2'].map(write)
  await runtime.settle()
  assert.deepEqual(await Promise.all(burst), ['d1!', 'c1!', 'b1!', 'b2!'])
  // Items of one key never share a flush, and a flush is in the order of its keys.
  assert.deepEqual([alone, flushes], [['a1'], ['b1 c1 d1', 'b2']])
})

test('what waits is not overtaken by a later item of its key', async () => {
  const { runtime, write, alone, flushes, state, warmUp } = syncGroup()
  await warmUp()
  state.begins = false
  const first = write('a1')
  state.begins = true
  const second = write('a2')
  await runtime.settle()
  assert.deepEqual(await Promise.all([first, second]), ['a1!', 'a2!'])
  assert.deepEqual([alone, flushes], [[], ['a1', 'a2']])
})

test('two callers are gathered from their second turn on', async () => {
  const { runtime, write, flushes, warmUp } = syncGroup()
  await warmUp()
  for (const turn of [1, 2, 3]) {
    const answers = [write(`a${turn}`), write(`b${turn}`)]
    await runtime.settle()
    await Promise.all(answers)
  }
  assert.deepEqual(flushes, ['b1', 'a2 b2', 'a3 b3'])
})

test('sockets and timers wait for a bounded number of commits', async () => {
  const { runtime, write, alone, warmUp } = syncGroup()
  await warmUp()
  const answers = Array.from({ length: 20 }, (_, n) => write(`a${n}`))
  assert.equal(alone.length, 8)
  await runtime.settle()
  await Promise.all(answers)
})

test('what failed at once is repeated only when it cannot have been applied', async () => {
  const { runtime, group, alone, flushes, state, warmUp } = syncGroup()
  await warmUp()
  state.fail = new OnceError('store_busy', 'Held.', { applied: 'no' })
  const held = watched(group.write('a1', 10 * SECOND))
  await runtime.advance(SECOND)
  assert.deepEqual([held.state, flushes], ['done', ['a1']])
  state.fail = new OnceError('store_unavailable', 'The commit failed.', { applied: 'maybe' })
  const lost = watched(group.write('b1', 10 * SECOND))
  await runtime.advance(SECOND)
  assert.deepEqual([lost.state, lost.error?.applied], ['store_unavailable', 'maybe'])
  state.fail = new OnceError('store_busy', 'Held.', { applied: 'no' })
  const late = watched(group.write('c1', 1))
  await runtime.advance(SECOND)
  assert.deepEqual([late.state, flushes, alone], ['store_busy', ['a1'], ['a1', 'b1', 'c1']])
})

test('after stop nothing is sent, not even at once', async () => {
  const { group, alone, warmUp } = syncGroup()
  await warmUp()
  await group.stop(() => new OnceError('stopped', 'Stopped.'))
  await assert.rejects(
    async () => await group.write('a1'),
    (error) => isOnceError(error, 'stopped'),
  )
  assert.deepEqual(alone, [])
})
