import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { limits } from '../../ledger/core/limits.ts'
import { createBell } from '../../runtime/bell.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { sortAnswers, startLane } from './lane.ts'
import { lineOf } from './message.ts'
import type { Published } from './port.ts'
import type { OutboxRow } from './rows.ts'

const kinds = ['confirmed', 'refused', 'unavailable'] as const

function rowOf(key: string | null, position: number): OutboxRow {
  const id = `m-${position}`
  const message = { id, topic: 't', key, sequence: null, body: '', headers: {} }
  return { position, addedAt: 0, attempts: 0, message, ...lineOf(key, id) }
}

test('of every line only what stands before its first failure counts, whatever a broker says of the rest', () => {
  const entry = fc.record({ key: fc.constantFrom(null, 'a', 'b'), kind: fc.constantFrom(...kinds) })
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 40 }), fc.nat(5), (entries, missing) => {
      const rows = entries.map(({ key }, position) => rowOf(key, position))
      const answers = entries
        .map(({ kind }): Published => (kind === 'confirmed' ? { kind } : { kind, reason: kind }))
        .slice(0, Math.max(0, entries.length - missing))
      const { confirmed, refused, away } = sortAnswers(rows, answers)
      const kindOf = (row: OutboxRow) => answers[row.position]?.kind ?? 'unavailable'
      let firstAway: string | null = null
      for (const line of Map.groupBy(rows, (row) => row.line).values()) {
        const end = line.findIndex((row) => kindOf(row) !== 'confirmed')
        const good = end < 0 ? line : line.slice(0, end)
        const stop = line[end]
        assert.deepEqual(
          confirmed.filter((row) => line.includes(row)),
          good,
        )
        const failed = refused.filter(({ row }) => line.includes(row)).map(({ row }) => row)
        assert.deepEqual(failed, stop !== undefined && kindOf(stop) === 'refused' ? [stop] : [])
        if (stop !== undefined && kindOf(stop) === 'unavailable') firstAway ??= stop.message.id
      }
      assert.equal(away === null, firstAway === null)
    }),
  )
})

test('keys spread over the partitions, and a key never looks like an id', () => {
  const partitions = new Set(Array.from({ length: 2_000 }, (_, n) => lineOf(`k-${n}`, '').partition))
  assert.equal(partitions.size, 64)
  assert.notEqual(lineOf('x', 'y').line, lineOf(null, 'x').line)
  assert.deepEqual(lineOf('x', 'y'), lineOf('x', 'z'))
  assert.match(lineOf('x', 'y').line, /^[0-9a-f]{32}$/)
})

test('after it was busy it polls often for a while, because writers do not notify a busy relay', async () => {
  const busyLooks = 10
  let [nowMs, asked] = [0, 0]
  const switches: string[] = []
  const waits: { readonly fromMs: number; readonly ms: number }[] = []
  const ended = Promise.withResolvers<void>()
  const runtime = {
    ...createRuntime(),
    monotonicMs: () => nowMs,
    setTimer(ms: number, fire: () => void, background: boolean) {
      // The deadline of the publisher, which answers at once.
      if (background) return { cancel() {} }
      waits.push({ fromMs: nowMs, ms })
      nowMs += ms
      if (waits.at(-1)?.ms === limits.relayPollCapMs && waits.at(-2)?.ms === limits.relayPollCapMs) ended.resolve()
      else queueMicrotask(fire)
      return { cancel() {} }
    },
  }
  const tenure = { partition: 1, fence: 1 }
  const unused = () => Promise.reject(new Error('Not called in this test.'))
  const lane = startLane(
    {
      runtime,
      settings: {
        publisher: { name: 'desk', publish: async (messages) => messages.map(() => ({ kind: 'confirmed' })) },
        leaseMs: 15_000,
        publishMs: 7_500,
        maxAttempts: 1,
        backoff: { baseMs: 1, capMs: 1 },
        away: { baseMs: 1, capMs: 1 },
        idMs: 1,
        forgetKeysMs: null,
        notified: true,
      },
      leases: {
        current: () => [tenure],
        listen: async (_tenures, listening) => void switches.push(`${listening} after ${asked} looks`),
        round: unused,
        check: unused,
        giveBack: unused,
        leave: unused,
        forget: unused,
      },
      rows: {
        next: async () => ({
          now: 0,
          rows: asked++ < busyLooks ? [rowOf('a', asked)] : [],
          full: new Set(),
          isEmpty: false,
        }),
        mark: async (_tenures, rows) => rows.length,
        fail: async () => [],
        hold: async () => [],
      },
      emit: () => {},
    },
    () => true,
    createBell(runtime),
  )
  await ended.promise
  await lane.stop()
  assert.deepEqual(switches, [`false after ${limits.relayBusyLooks} looks`, `true after ${busyLooks + 1} looks`])
  for (const { fromMs, ms } of waits.slice(0, -2)) {
    const openForMs = fromMs + ms
    assert.ok(ms <= Math.max(limits.relayDozeBaseMs, openForMs / 8), `${ms} ms late after ${openForMs} ms`)
  }
  assert.ok(waits.length < 60, `${waits.length} looks until it sleeps`)
  assert.ok(nowMs > 10_000)
})
