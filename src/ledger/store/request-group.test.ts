import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuntime } from '../../runtime/test-runtime.ts'
import type { ErrorOptions } from '../core/errors.ts'
import { OnceError } from '../core/errors.ts'
import { limits, SECOND } from '../core/limits.ts'
import type { ReconcileRequest, RenewRequest, Request, SettleRequest } from '../core/request.ts'
import type { Applied } from './port.ts'
import { createRequestGroup } from './request-group.ts'
import { watched } from './test-requests.ts'

/** A group commit whose flushes are answered by hand: each waits until the test says what becomes of it. */
function manualGroup(lanes = 1) {
  const runtime = createTestRuntime()
  const flushes: { readonly requests: readonly Request[]; readonly timeoutMs: number; end(how: How): void }[] = []
  type How = 'ok' | OnceError | ((request: Request) => Applied)
  const group = createRequestGroup(runtime, {
    lanes,
    stopped: () => new OnceError('stopped', 'Stopped.'),
    flush: (requests, { timeoutMs }) =>
      new Promise((resolve, reject) => {
        const end = (how: How) => {
          if (how instanceof OnceError) reject(how)
          else resolve(requests.map((request) => (how === 'ok' ? ok : how(request))))
        }
        flushes.push({ requests, timeoutMs, end })
      }),
  })
  const apply = async (request: Request, timeoutMs: number = limits.storeCallMs) => group.apply(request, { timeoutMs })
  const ids = () => flushes.map(({ requests }) => requests.map(({ id }) => id).join(''))
  return { runtime, flushes, ids, apply, stop: group.stop }
}

const ok: Applied = { decision: { kind: 'unchanged' }, record: null, now: 0 }
const reconcile = (id: string): ReconcileRequest => ({ kind: 'reconcile', id })
const renew = (id: string): RenewRequest => ({ kind: 'renew', id, claimId: 'c', fence: 1, leaseMs: 1_000 })
const settleLike = (id: string, bytes: number): SettleRequest => {
  const to = { state: 'succeeded', outcome: { kept: 'response', data: 'x'.repeat(bytes) } } as const
  return { kind: 'settle', id, grant: {} as SettleRequest['grant'], to, pointer: null }
}
const refused = (options: ErrorOptions = {}) => new OnceError('row_refused', 'No.', options)

test('what arrives while a flush is under way is the next flush, sorted by id', async () => {
  const { runtime, flushes, ids, apply, stop } = manualGroup()
  const all = [apply(reconcile('b')), apply(reconcile('a'))]
  await runtime.settle()
  assert.deepEqual(ids(), ['ab'])
  all.push(apply(reconcile('z')), apply(reconcile('d')), apply(reconcile('c')))
  await runtime.settle()
  assert.deepEqual(ids(), ['ab'])
  const stopped = watched(stop())
  flushes[0]?.end('ok')
  await runtime.settle()
  assert.deepEqual(ids(), ['ab', 'cdz'])
  assert.equal(stopped.state, 'waiting')
  flushes[1]?.end('ok')
  await Promise.all(all)
  await runtime.settle()
  assert.equal(stopped.state, 'done')
})

test('one mutation of a record at a time, and what runs goes before what starts', async () => {
  const { runtime, flushes, ids, apply } = manualGroup(2)
  void apply(reconcile('a'))
  await runtime.settle()
  void apply(reconcile('a'))
  void apply(reconcile('b'))
  await runtime.settle()
  // The second lane takes what it may; the second change of `a` waits for the first.
  assert.deepEqual(ids(), ['a', 'b'])
  void apply(reconcile('c'))
  void apply(settleLike('d', 1))
  void apply(renew('e'))
  flushes[0]?.end('ok')
  await runtime.settle()
  assert.deepEqual(ids(), ['a', 'b', 'acde'])
  const [first] = flushes
  assert.ok(first)
})

test('a flush is bounded in rows and in bytes, heartbeats first', async () => {
  const { runtime, flushes, apply } = manualGroup()
  for (let n = 0; n < limits.batchRows + 1; n++) void apply(reconcile(`r${n}`))
  void apply(renew('beat'))
  await runtime.settle()
  assert.equal(flushes[0]?.requests.length, limits.batchRows)
  assert.ok(flushes[0]?.requests.some(({ kind }) => kind === 'renew'))
  flushes[0]?.end('ok')
  await runtime.settle()
  assert.equal(flushes[1]?.requests.length, 2)
  flushes[1]?.end('ok')
  for (const id of ['x', 'y', 'z']) void apply(settleLike(id, limits.batchBytes / 2))
  await runtime.settle()
  assert.equal(flushes[2]?.requests.length, 1)
})

test('a row that spoils its batch is found by halving, and fails alone', async () => {
  const { runtime, flushes, apply } = manualGroup()
  const ends = ['a', 'b', 'c', 'd', 'e'].map((id) => watched(apply(reconcile(id))))
  await runtime.settle()
  for (let n = 0; n < flushes.length; n++) {
    const flush = flushes[n]
    flush?.end(flush.requests.some(({ id }) => id === 'd') ? refused() : 'ok')
    await runtime.settle()
  }
  assert.deepEqual(
    ends.map(({ state }) => state),
    ['done', 'done', 'done', 'row_refused', 'done'],
  )
})

test('a row that the store itself refuses fails alone; the others are not sent again', async () => {
  const { runtime, flushes, apply } = manualGroup()
  const ends = ['a', 'b', 'c'].map((id) => watched(apply(reconcile(id))))
  await runtime.settle()
  flushes[0]?.end(({ id }) => (id === 'b' ? { error: refused() } : ok))
  await runtime.advance(1 * SECOND)
  assert.deepEqual(
    ends.map(({ state }) => state),
    ['done', 'row_refused', 'done'],
  )
  assert.equal(flushes.length, 1)
})

test('a locked row is retried apart from the others, on one lane at most', async () => {
  const { runtime, flushes, ids, apply } = manualGroup(2)
  const busy = new OnceError('store_busy', 'Held.')
  const held = ['h', 'i'].map((id) => watched(apply(reconcile(id))))
  const other = watched(apply(reconcile('a')))
  await runtime.settle()
  assert.deepEqual(ids(), ['ahi'])
  flushes[0]?.end(({ id }) => (id === 'a' ? ok : { error: busy }))
  await runtime.settle()
  assert.equal(other.state, 'done')
  // While they wait, and while one of them is retried, other rows continue.
  await runtime.advance(14)
  void apply(reconcile('b'))
  await runtime.advance(1)
  assert.deepEqual(ids().slice(1).toSorted(), ['b', 'h'])
  const next = watched(apply(reconcile('c')))
  flushes[ids().indexOf('b')]?.end('ok')
  await runtime.settle()
  assert.deepEqual(ids().slice(3), ['c'])
  flushes[3]?.end('ok')
  flushes[ids().indexOf('h')]?.end('ok')
  await runtime.settle()
  assert.deepEqual(ids().slice(4), ['i'])
  flushes[4]?.end('ok')
  await runtime.advance(SECOND)
  assert.deepEqual([next.state, ...held.map(({ state }) => state)], ['done', 'done', 'done'])
})

test('a store that hangs delays no request beyond the deadline, sent or waiting', async () => {
  const { runtime, flushes, ids, apply } = manualGroup()
  const sent = watched(apply(reconcile('a')))
  await runtime.advance(6 * SECOND)
  const queued = watched(apply(reconcile('b')))
  const short = watched(apply(renew('c'), 2 * SECOND))
  await runtime.advance(3 * SECOND)
  assert.deepEqual([short.state, short.error?.applied], ['store_unavailable', 'no'])
  await runtime.advance(2 * SECOND)
  assert.deepEqual([sent.state, sent.error?.applied], ['store_unavailable', 'maybe'])
  assert.equal(queued.state, 'waiting')
  await runtime.advance(6 * SECOND)
  assert.deepEqual([queued.state, queued.error?.applied], ['store_unavailable', 'no'])
  assert.deepEqual(ids(), ['a'])
  // Nothing is left of it: the next one goes its way.
  flushes[0]?.end('ok')
  const next = watched(apply(reconcile('a')))
  await runtime.settle()
  assert.deepEqual(ids(), ['a', 'a'])
  flushes[1]?.end('ok')
  await runtime.advance(1 * SECOND)
  assert.equal(next.state, 'done')
  assert.deepEqual(runtime.pending(), { foreground: 0, background: 0 })
})

test('more waiting requests than the bound are refused at once', async () => {
  const { runtime, apply } = manualGroup()
  for (let n = 0; n <= limits.batchQueueRows; n++) apply(reconcile(`r${n}`)).catch(() => {})
  const refusedOne = watched(apply(reconcile('late')))
  await runtime.settle()
  assert.equal(refusedOne.state, 'store_busy')
})

test('a single request is sent at once; after a flush of several, requests are gathered again', async () => {
  const { runtime, flushes, ids, apply } = manualGroup()
  const all = [apply(reconcile('a'))]
  assert.deepEqual(ids(), [])
  await runtime.settle()
  flushes[0]?.end('ok')
  await runtime.settle()
  all.push(apply(reconcile('b')), apply(reconcile('c')), apply(reconcile('d')))
  assert.deepEqual(ids(), ['a', 'b'])
  await runtime.settle()
  assert.deepEqual(ids(), ['a', 'b'])
  flushes[1]?.end('ok')
  await runtime.settle()
  assert.deepEqual(ids(), ['a', 'b', 'cd'])
  flushes[2]?.end('ok')
  await Promise.all(all)
  void apply(reconcile('e'))
  assert.deepEqual(ids(), ['a', 'b', 'cd'])
  await runtime.settle()
  assert.deepEqual(ids(), ['a', 'b', 'cd', 'e'])
})

test('a caller that has its answer finds the lane free', async () => {
  const { runtime, flushes, ids, apply } = manualGroup()
  const first = apply(reconcile('a'))
  const next = Promise.resolve(first).then(() => apply(reconcile('b')))
  await runtime.settle()
  flushes[0]?.end('ok')
  await first
  await Promise.resolve()
  assert.deepEqual(ids(), ['a', 'b'])
  flushes[1]?.end('ok')
  await next
})

test('two requests of one record never share a flush', async () => {
  const { runtime, flushes, ids, apply } = manualGroup()
  const all = [apply(reconcile('b')), apply(reconcile('a')), apply(reconcile('b')), apply(renew('b'))]
  for (let n = 0; n < 3; n++) {
    await runtime.settle()
    flushes[n]?.end('ok')
  }
  await Promise.all(all)
  // What runs goes before what starts, and then they go in the order in which they came.
  assert.deepEqual(
    flushes.map(({ requests }) => requests.map(({ kind, id }) => `${kind} ${id}`)),
    [['reconcile a', 'renew b'], ['reconcile b'], ['reconcile b']],
  )
  assert.deepEqual(ids(), ['ab', 'b', 'b'])
})
