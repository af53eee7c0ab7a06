import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createLedger, OnceError } from 'onceonly'
import type { GuardEvent, GuardedAttempt } from 'onceonly/guard'
import { memoryStore } from 'onceonly/memory'
import { createFaultyStore } from 'onceonly/testing'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { until } from '../../../src/testing/until.ts'
import { onEveryStore } from '../../support/ledger/worlds.ts'
import { guardOver, hello, type Message, sender } from './messages.ts'

/** An original that exists, and came to nothing. */
function failing(id: string, keys: string[] = [], thrown?: Error) {
  return async (attempt: GuardedAttempt | null) => {
    keys.push(attempt?.effectKey ?? '')
    await attempt?.attach({ type: 'message', id })
    attempt?.failed()
    if (thrown !== undefined) throw thrown
    return id
  }
}

onEveryStore('a failed original counts like any other, unless its content may be sent again', async ({ once }) => {
  const sent: string[] = []
  const usual = guardOver(once)
  assert.equal((await usual.send(hello, failing('m1'))).kind, 'sent')
  const standing = await usual.send(hello, sender(sent, 'never'))
  assert.ok(standing.kind === 'duplicate' && standing.original.id === 'm1', standing.kind)

  const lenient = guardOver(once, { name: 'lenient', onFailed: 'allow' })
  const keys: string[] = []
  assert.deepEqual(await lenient.send(hello, failing('m1', keys)), { kind: 'sent', value: 'm1' })
  await assert.rejects(lenient.send(hello, failing('m2', keys, new Error('refused'))), /refused/)
  const third = await lenient.send(hello, async (attempt) => {
    // Nothing of the failed one is left: neither its pointer nor its effect key, which its provider has seen.
    assert.equal(attempt?.pointer, null)
    keys.push(attempt?.effectKey ?? '')
    return sender(sent, 'm3')(attempt)
  })
  assert.equal(third.kind, 'sent')
  assert.equal(new Set(keys).size, 3)
  const after = await lenient.send(hello, sender(sent, 'never'))
  assert.ok(after.kind === 'duplicate' && after.original.id === 'm3', after.kind)

  // What was thrown without that word may still have been sent.
  const two = { ...hello, body: 'two' }
  const lost = async (attempt: GuardedAttempt | null) => {
    await attempt?.attach({ type: 'message', id: 'm4' })
    throw new Error('no answer')
  }
  await assert.rejects(lenient.send(two, lost), /no answer/)
  const unsure = await lenient.send(two, sender(sent, 'never'))
  assert.ok(unsure.kind === 'duplicate' && unsure.original.id === 'm4', unsure.kind)
  assert.deepEqual(sent, ['m3'])
})

onEveryStore('a failed send frees no lock that another send holds by now', async ({ once, second }) => {
  const sent: string[] = []
  const guard = guardOver(once, { onFailed: 'allow' })
  const other = guardOver(await second(), { onFailed: 'allow' })
  const begun = Promise.withResolvers<void>()
  const freed = Promise.withResolvers<void>()
  const first = guard.send(hello, async (attempt) => {
    await attempt?.attach({ type: 'message', id: 'm1' })
    begun.resolve()
    await freed.promise
    attempt?.failed()
    return 'm1'
  })
  await begun.promise
  assert.equal(await other.release({ message: hello }), true)
  assert.equal((await other.send(hello, sender(sent, 'm2'))).kind, 'sent')
  freed.resolve()
  await first
  const later = await guard.send(hello, sender(sent, 'never'))
  assert.ok(later.kind === 'duplicate' && later.original.id === 'm2', later.kind)
})

onEveryStore('the age of a pending original is measured when it is reported', async ({ once, second }) => {
  const events: GuardEvent<Message>[] = []
  const waitMs = 300
  const patient = guardOver(once, { waitMs, on: (event) => events.push(event) })
  const other = guardOver(await second())
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const slow = other.send(hello, () => {
    begun.resolve()
    return over.promise
  })
  await begun.promise
  assert.deepEqual(await patient.send(hello, sender([], 'never')), { kind: 'pending' })
  over.resolve()
  await slow
  const [pending] = events
  assert.ok(pending?.kind === 'pending' && pending.ageMs >= waitMs, JSON.stringify(pending))
})

onEveryStore('a listener that throws stops no send and changes no verdict', async ({ once }) => {
  const guard = guardOver(once, {
    on: () => {
      throw new Error('the listener is broken')
    },
  })
  const sent: string[] = []
  assert.equal((await guard.send(hello, sender(sent, 'm1'))).kind, 'sent')
  assert.equal((await guard.send(hello, sender(sent, 'never'))).kind, 'duplicate')
})

for (const onStoreDown of ['open', 'closed'] as const) {
  onEveryStore(
    `locks that fail while an original is in flight: nothing is sent beside it, onStoreDown: ${onStoreDown}`,
    async ({ world, once }) => {
      const { store } = world
      let claims = 0
      const lame = {
        ...store,
        claims: {
          ...store.claims,
          apply: (...args: Parameters<typeof store.claims.apply>) =>
            args[0].kind === 'claim' && ++claims > 1
              ? Promise.reject(new OnceError('store_unavailable', 'away', { applied: 'no' }))
              : store.claims.apply(...args),
        },
      } as typeof store
      const ledger = createLedger({ store: lame, background: false })
      const events: GuardEvent<Message>[] = []
      const guard = guardOver(ledger, { onStoreDown, waitMs: 100, on: (event) => events.push(event) })
      const sent: string[] = []
      const begun = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      const first = guardOver(once).send(hello, async (attempt) => {
        begun.resolve()
        await over.promise
        return sender(sent, 'm1')(attempt)
      })
      await begun.promise
      assert.deepEqual(await guard.send(hello, sender(sent, 'never')), { kind: 'pending' })
      assert.ok(claims > 1)
      over.resolve()
      await first
      assert.deepEqual(sent, ['m1'])
      assert.deepEqual(
        events.map(({ kind }) => kind),
        ['error', 'pending'],
      )
      await ledger.stop()
    },
  )
}

const DEADLINE_MS = 200
/** Of the event loop, in which everything happens that needs no time: far more than that takes. */
const TURNS_MOST = 10_000

/** When the store of the locks stops responding: before the original is attached, or after. */
for (const when of ['attach', 'settle']) {
  test(`locks that stop responding before the ${when} delay a send no longer than their deadline`, async ({ mock }) => {
    // The deadline passes when the store has stopped responding, and not while a busy machine still works.
    mock.timers.enable({ apis: ['setTimeout'] })
    const store = memoryStore()
    const gate = Promise.withResolvers<void>()
    let stalled = Promise.resolve()
    const slow = createFaultyStore(store, { script: () => 'none', delay: () => stalled })
    // A stopped clock, so that the ledger itself gives no call up for its age.
    const runtime = { ...createRuntime(), monotonicMs: () => 0 }
    const once = createLedger({ store: slow, background: false, runtime })
    const guard = guardOver(once, { decideMs: DEADLINE_MS, waitMs: 0 })
    const sending = guard.send(hello, async (attempt) => {
      if (when === 'attach') stalled = gate.promise
      const attached = attempt?.attach({ type: 'message', id: 'm1' }) ?? Promise.resolve()
      if (when === 'attach') await assert.rejects(attached, { code: 'store_unavailable' })
      else await attached
      stalled = gate.promise
      return 'm1'
    })
    let over = false
    void sending.finally(() => void (over = true))
    for (let turns = 0; !over; turns++) {
      assert.ok(turns < TURNS_MOST, 'the send still waits for its locks')
      if (stalled === gate.promise) mock.timers.tick(DEADLINE_MS)
      await setImmediate()
    }
    assert.deepEqual(await sending, { kind: 'sent', value: 'm1' })
    mock.timers.reset()
    stalled = Promise.resolve()
    gate.resolve()
    // What could not be written in time was written later: the original is recorded.
    await once.stop()
    const other = createLedger({ store, background: false })
    const again = await guardOver(other).send(hello, async () => 'never')
    assert.ok(again.kind === 'duplicate' && again.original.id === 'm1', again.kind)
    await other.stop()
    await store.stop()
  })
}

test('a lock that could not be given back is free as soon as its store is back', async () => {
  const store = memoryStore()
  let away = false
  const faulty = createFaultyStore(store, { script: () => (away ? 'refused' : undefined) })
  const ledger = createLedger({ store: faulty, background: false })
  const guard = guardOver(ledger, { waitMs: 0 })
  const sent: string[] = []
  const failed = guard.send(hello, async () => {
    away = true
    throw new Error('no message could be stored')
  })
  await assert.rejects(failed, /no message/)
  away = false
  await until(
    'the lock is given back',
    () => guard.send(hello, sender(sent, 'm2')),
    ({ kind }) => {
      assert.ok(kind === 'sent' || kind === 'pending', kind)
      return kind === 'sent'
    },
  )
  assert.deepEqual(sent, ['m2'])
  await ledger.stop()
  await store.stop()
})
