import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { createTestRuntime } from '../runtime/test-runtime.ts'
import { OnceError } from './core/errors.ts'
import { SECOND } from './core/limits.ts'
import type { ReconcileRequest, Request } from './core/request.ts'
import { createRequests } from './requests.ts'
import type { AppliedDecision, Claims } from './store/port.ts'
import { watched } from './store/test-requests.ts'

/** A store that is answered by hand: every call waits until the test says what becomes of it. */
function manualClaims() {
  const calls: { readonly request: Request; readonly timeoutMs: number; end(how: 'ok' | OnceError): void }[] = []
  const claims: Claims = {
    apply: (request, { timeoutMs }) =>
      new Promise((resolve, reject) => {
        const end = (how: 'ok' | OnceError) => (how === 'ok' ? resolve(ok as never) : reject(how))
        calls.push({ request, timeoutMs, end })
      }),
    read: () => assert.fail('nothing is read'),
    watch: () => assert.fail('nothing is watched'),
  }
  return { claims, calls, ids: () => calls.map(({ request: { id } }) => id) }
}

const ok: AppliedDecision = { decision: { kind: 'unchanged' }, record: null, now: 0 }
const reconcile = (id: string): ReconcileRequest => ({ kind: 'reconcile', id })
const away = (applied: 'no' | 'maybe') => new OnceError('store_unavailable', 'Away.', { applied })

test('after a lost connection a request is repeated, and the last error says that it may have happened', async () => {
  const runtime = createTestRuntime()
  const { claims, calls, ids } = manualClaims()
  const { apply } = createRequests(claims, runtime)
  const end = watched(apply(reconcile('a')))
  await runtime.settle()
  calls[0]?.end(away('maybe'))
  await runtime.advance(50)
  assert.deepEqual(ids(), ['a', 'a'])
  // Now the store refuses for certain, but the first try is still in doubt.
  for (let n = 1; n < 4; n++) {
    calls[n]?.end(away('no'))
    await runtime.advance(1 * SECOND)
  }
  assert.equal(calls.length, 4)
  assert.equal(end.state, 'store_unavailable')
  assert.equal(end.error?.applied, 'maybe')
  assert.equal(end.error?.message.split(end.error.next).length, 2, 'the advice is given once')
})

test('an operator action that may have happened is not repeated', async () => {
  const runtime = createTestRuntime()
  const { claims, calls } = manualClaims()
  const { apply } = createRequests(claims, runtime)
  const end = watched(apply({ kind: 'forget', id: 'a', by: 'ann', ifFence: null, onlyRunning: false }))
  await runtime.settle()
  calls[0]?.end(away('maybe'))
  await runtime.advance(5 * SECOND)
  assert.equal(end.state, 'store_unavailable')
  assert.equal(calls.length, 1)
})

test('a busy store and a stopped one are not asked again', async () => {
  const runtime = createTestRuntime()
  for (const code of ['store_busy', 'stopped', 'row_refused'] as const) {
    const { claims, calls } = manualClaims()
    const end = watched(createRequests(claims, runtime).apply(reconcile('a')))
    calls[0]?.end(new OnceError(code, 'No.', { applied: 'no' }))
    await runtime.advance(5 * SECOND)
    assert.deepEqual([end.state, calls.length], [code, 1])
  }
})

test('every try has what is left of the time, and the last error comes before the deadline', async () => {
  const runtime = createTestRuntime()
  const { claims, calls } = manualClaims()
  const { apply } = createRequests(claims, runtime)
  const end = watched(apply(reconcile('a'), 1 * SECOND))
  await runtime.advance(900)
  calls[0]?.end(away('maybe'))
  await runtime.advance(15)
  assert.deepEqual(
    calls.map(({ timeoutMs }) => timeoutMs),
    [1_000, 85],
  )
  await runtime.advance(70)
  calls[1]?.end(away('maybe'))
  await runtime.settle()
  assert.equal(end.state, 'store_unavailable')
})

test('the end waits for what is under way, also while it rests before another try', async () => {
  const runtime = createTestRuntime()
  const { claims, calls } = manualClaims()
  const { apply, drain } = createRequests(claims, runtime)
  const sent = watched(apply(reconcile('a')))
  const drained = watched(drain())
  await runtime.settle()
  calls[0]?.end(away('maybe'))
  await runtime.settle()
  assert.deepEqual([sent.state, drained.state], ['waiting', 'waiting'])
  await runtime.advance(50)
  calls[1]?.end('ok')
  await runtime.settle()
  assert.deepEqual([sent.state, drained.state], ['done', 'done'])
  await drain()
  assert.deepEqual(runtime.pending(), { foreground: 0, background: 0 })
})

test('the promise of a store from another realm is waited for', async () => {
  const { resolve } = runInNewContext('({ resolve: (value) => Promise.resolve(value) })') as {
    resolve(value: AppliedDecision): Promise<AppliedDecision>
  }
  const claims = { ...manualClaims().claims, apply: () => resolve(ok) as never }
  const { apply, drain } = createRequests(claims, createTestRuntime())
  const applied = apply(reconcile('a'))
  assert.ok(applied instanceof Promise)
  assert.equal(await applied, ok)
  await drain()
})
