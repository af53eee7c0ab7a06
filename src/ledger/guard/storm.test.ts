import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OnceError } from '../core/errors.ts'
import { createLedger } from '../ledger.ts'
import { memoryStore } from '../stores/memory/index.ts'
import { createGuard } from './guard.ts'

/** A guard on a store that counts the claims it is asked for. */
function counted() {
  const memory = memoryStore()
  let claims = 0
  const apply: typeof memory.claims.apply = (request, call) => {
    if (request.kind === 'claim') claims += 1
    return memory.claims.apply(request, call)
  }
  const store = { ...memory, claims: { ...memory.claims, apply } }
  const ledger = createLedger({ store, background: false })
  const guard = createGuard<string>({ ledger, name: 'test', identity: (text) => ['acme', text] })
  return {
    guard,
    claims: () => claims,
    async [Symbol.asyncDispose]() {
      await ledger.stop()
      await memory.stop()
    },
  }
}

test('identical sends at once in one process are one question to the store, and one send', async () => {
  await using scene = counted()
  let sends = 0
  const verdicts = await Promise.all(
    Array.from({ length: 400 }, () =>
      scene.guard.send('hello', async (attempt) => {
        sends++
        await attempt?.attach({ type: 'message', id: 'm-1' })
        return 'm-1'
      }),
    ),
  )
  assert.equal(sends, 1)
  assert.equal(scene.claims(), 1)
  assert.equal(verdicts.filter(({ kind }) => kind === 'sent').length, 1)
  assert.equal(verdicts.filter(({ kind }) => kind === 'duplicate').length, 399)
})

test('a first send that throws leaves the content to one of those that wait', async () => {
  await using scene = counted()
  let sends = 0
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, () =>
      scene.guard.send('hello', async (attempt) => {
        sends++
        if (sends === 1) throw new Error('before the original exists')
        await attempt?.attach({ type: 'message', id: 'm-2' })
        return 'm-2'
      }),
    ),
  )
  assert.equal(sends, 2)
  assert.equal(results.filter(({ status }) => status === 'rejected').length, 1)
  const kinds = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.kind] : []))
  assert.deepEqual([kinds.filter((kind) => kind === 'sent').length, kinds.length], [1, 49])
})

test('other content does not wait', async () => {
  await using scene = counted()
  const gate = Promise.withResolvers<void>()
  const slow = scene.guard.send('slow', () => gate.promise)
  assert.equal((await scene.guard.send('quick', async () => 'q')).kind, 'sent')
  gate.resolve()
  await slow
})

test('without a store, those that wait in this process are duplicates of the one that was sent', async () => {
  const memory = memoryStore()
  const apply: typeof memory.claims.apply = async () => {
    throw new OnceError('store_unavailable', 'It is away.', { applied: 'no' })
  }
  const ledger = createLedger({ store: { ...memory, claims: { ...memory.claims, apply } }, background: false })
  const guard = createGuard<string>({
    ledger,
    name: 'test',
    identity: (text) => ['acme', text],
    originalOf: (id) => ({ type: 'message', id: String(id) }),
  })
  let sends = 0
  const verdicts = await Promise.all(Array.from({ length: 20 }, () => guard.send('hello', async () => `m-${++sends}`)))
  assert.equal(sends, 1)
  assert.deepEqual(
    ['unguarded', 'duplicate'].map((kind) => verdicts.filter((verdict) => verdict.kind === kind).length),
    [1, 19],
  )
  await ledger.stop()
  await memory.stop()
})
