import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuntime } from '../../runtime/test-runtime.ts'
import { createHeldLeases } from './held-leases.ts'
import { together } from './held-rows.ts'

const LEASE_MS = 60_000
const END = 'ended'

/** Leases by name; those named in `lost` are another holder's. */
function scene() {
  const runtime = createTestRuntime()
  const lost = new Set<string>()
  const renewed: string[][] = []
  const ended: string[] = []
  const failures: unknown[] = []
  const recoveries: number[] = []
  let away: Error | null = null
  const renew = together(async (names: readonly string[]) => {
    renewed.push([...names])
    if (away !== null) throw away
    return new Set(names.filter((name) => !lost.has(name)))
  })
  const leases = createHeldLeases<string, true, string>({
    runtime,
    renew: async (name) => ((await renew(name)).has(name) ? null : true),
    endOf: () => END,
    ended: (name, _end, loss) => ended.push(`${name} ${loss === null ? 'over' : 'lost'}`),
    failed: (error) => failures.push(error),
    recovered: (count) => recoveries.push(count),
  })
  const hold = (name: string, sentAtMs = leases.nowMs()) => leases.hold(name, { sentAtMs, leaseMs: LEASE_MS })
  return {
    runtime,
    lost,
    renewed,
    ended,
    failures,
    recoveries,
    leases,
    hold,
    setAway: (error: Error | null) => {
      away = error
    },
  }
}

test('leases that are due at the same time are renewed by one call', async () => {
  const { runtime, renewed, hold } = scene()
  const [a, b] = [hold('a'), hold('b')]
  await runtime.advance(LEASE_MS / 2)
  assert.deepEqual(renewed, [['a', 'b']])
  await runtime.advance(LEASE_MS * 3)
  assert.ok(a.lasts() && b.lasts())
})

test('a lease lasts for as long as is left of it, counted from before it was asked for', async () => {
  const { runtime, hold } = scene()
  const lease = hold('a', runtime.monotonicMs() - LEASE_MS + 1_000)
  assert.equal(lease.lasts(999), true)
  assert.equal(lease.lasts(1_000), false)
  assert.equal(lease.end(), null)
})

test('all leases can be renewed at once, and those that are lost end', async () => {
  const { lost, renewed, ended, leases, hold } = scene()
  const [a, b] = [hold('a'), hold('b')]
  const signal = a.signal()
  lost.add('a')
  await leases.renewAll()
  assert.deepEqual(renewed, [['a', 'b']])
  assert.deepEqual(ended, ['a lost'])
  assert.deepEqual([a.lasts(), a.end(), b.lasts()], [false, END, true])
  assert.equal(signal.reason, END)
})

test('a store that is away is reported once, and leases end by their own deadline', async () => {
  const { runtime, renewed, ended, failures, recoveries, hold, setAway } = scene()
  hold('a')
  hold('b')
  const away = new Error('away')
  setAway(away)
  await runtime.advance(LEASE_MS + 10_000)
  assert.deepEqual(ended, ['a over', 'b over'])
  assert.ok(renewed.length > 1)
  assert.deepEqual([failures, recoveries], [[away], []])
  // What is held now was granted, so that the store is back.
  const tries = renewed.length
  hold('c')
  assert.deepEqual(recoveries, [tries])
})

test('a store that answers again is reported once, and its next absence is another one', async () => {
  const { runtime, failures, recoveries, hold, setAway } = scene()
  const lease = hold('a')
  const tickMs = LEASE_MS / 20
  for (const outage of [1, 2]) {
    setAway(new Error('away'))
    await runtime.advance(LEASE_MS / 2)
    assert.equal(failures.length, outage)
    setAway(null)
    await runtime.advance(2 * tickMs)
    assert.equal(recoveries.length, outage)
    assert.ok(lease.lasts() && (recoveries.at(-1) ?? 0) > 1)
  }
})

test('a lease that was let go is neither renewed nor reported, and still ends', async () => {
  const { runtime, renewed, ended, hold } = scene()
  const lease = hold('a')
  lease.letGo()
  await runtime.advance(LEASE_MS)
  assert.deepEqual([renewed, ended], [[], []])
  assert.equal(lease.end(), END)
})
