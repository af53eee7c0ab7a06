import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { isOnceError, OnceError } from '../core/errors.ts'
import { createLedger } from '../ledger.ts'
import { memoryStore } from '../stores/memory/index.ts'
import { createGuard } from './guard.ts'

/** The store of the locks is silent for longer than the guard waits, and grants the lock afterwards. */

const CALL = { timeoutMs: 60_000 }
/** Short, because each test outlives it. */
const DEADLINE_MS = 50
/** Long enough for a claim on a busy machine; a write that fails is given up after it. */
const PATIENT_MS = 2_000

function stage() {
  const store = memoryStore()
  const answered = Promise.withResolvers<void>()
  const ids = new Set<string>()
  const apply: typeof store.claims.apply = async (request, call) => {
    ids.add(request.id)
    const applied = await store.claims.apply(request, call)
    await answered.promise
    return applied
  }
  const silent = { ...store, claims: { ...store.claims, apply } }
  const shared = { name: 'mail', identity: (text: string) => ['acme', text] as const, waitMs: 0 }
  const hasty = createGuard<string>({
    ...shared,
    ledger: createLedger({ store: silent, background: false }),
    decideMs: DEADLINE_MS,
    originalOf: (value) => ({ type: 'mail', id: String(value) }),
  })
  const patient = createGuard<string>({ ...shared, ledger: createLedger({ store, background: false }) })
  const stateOfLock = async () => {
    const { records } = await store.claims.read([...ids], CALL)
    return records[0]?.state
  }
  return { hasty, patient, answer: answered.resolve, stateOfLock }
}

test('a lock that is granted late covers the original that was sent without it', async () => {
  const { hasty, patient, answer, stateOfLock } = stage()
  assert.deepEqual(await hasty.send('hello', async (attempt) => (attempt === null ? 'm-1' : 'guarded')), {
    kind: 'unguarded',
    value: 'm-1',
  })
  answer()
  await until('the lock is settled', stateOfLock, (state) => state !== 'in_progress')
  const verdict = await patient.send('hello', async () => assert.fail('it was sent twice'))
  assert.ok(verdict.kind === 'duplicate')
  assert.deepEqual(verdict.original, { type: 'mail', id: 'm-1' })
})

test('a lock that is granted late is given back when nothing was sent without it', async () => {
  const { hasty, patient, answer, stateOfLock } = stage()
  const failing = hasty.send('hello', () => Promise.reject(new Error('no line')))
  await assert.rejects(failing, /no line/)
  answer()
  await until('the lock is free', stateOfLock, (state) => state !== 'in_progress')
  assert.equal((await patient.send('hello', async () => 'm-2')).kind, 'sent')
})

test('a lock whose original could not be attached is kept although the send threw', async () => {
  const store = memoryStore()
  const ids = new Set<string>()
  let isAway = true
  const apply: typeof store.claims.apply = async (request, call) => {
    ids.add(request.id)
    if (isAway && request.kind === 'settle') throw new OnceError('store_unavailable', 'Away.')
    return store.claims.apply(request, call)
  }
  const partly = { ...store, claims: { ...store.claims, apply } }
  const shared = { name: 'mail', identity: (text: string) => ['acme', text] as const, waitMs: 0 }
  const ledger = createLedger({ store: partly, background: false })
  const guard = createGuard<string>({ ...shared, ledger, decideMs: PATIENT_MS })
  const sending = guard.send('hello', async (attempt) => {
    // The message is out; the failed attach ends the send with an error.
    await attempt?.attach({ type: 'mail', id: 'm-1' })
  })
  await assert.rejects(sending, (error) => isOnceError(error, 'store_unavailable'))
  isAway = false
  await until(
    'the lock is settled',
    async () => (await store.claims.read([...ids], CALL)).records[0]?.state,
    (state) => state !== 'in_progress',
  )
  const patient = createGuard<string>({ ...shared, ledger: createLedger({ store, background: false }) })
  const verdict = await patient.send('hello', async () => assert.fail('it was sent twice'))
  assert.ok(verdict.kind === 'duplicate')
  assert.deepEqual(verdict.original, { type: 'mail', id: 'm-1' })
})
