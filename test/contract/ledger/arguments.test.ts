import assert from 'node:assert/strict'
import type { EffectContext } from 'onceonly'
import { isOnceError, MINUTE } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { kinds, onEveryStore } from '../../support/ledger/worlds.ts'

const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })
const never = () => assert.fail('the effect ran')

onEveryStore('arguments are checked before anything is claimed', async ({ once, events }) => {
  const leased = once.operation({ name: 'leased', effect: 'external' })
  const written = once.operation({ name: 'written', effect: 'transaction' })
  const guard = createGuard<string>({ ledger: once, name: 'g', identity: (text) => ['acme', text] })
  for (const effect of [undefined, null, 'send', { signal: undefined }] as never[]) {
    const calls: readonly [string, () => Promise<unknown>][] = [
      ['run', () => leased.run(who('k'), 1, effect)],
      ['execute', () => leased.execute(who('k'), 1, effect)],
      ['run', () => written.run(who('k'), 1, effect)],
      ['execute', () => written.execute(who('k'), 1, effect)],
      ['send', () => guard.send('hello', effect)],
    ]
    for (const [name, call] of calls) {
      await assert.rejects(call, (error) => isOnceError(error, 'bad_option') && error.message.includes(`\`${name}\``))
    }
  }
  for (const options of [{ decideMs: Number.NaN }, { decideMs: -1 }, { decideMs: '5' }, { signal: {} }] as never[]) {
    await assert.rejects(leased.run(who('k'), 1, never, options), (error) => isOnceError(error, 'bad_option'))
    await assert.rejects(written.run(who('k'), 1, never, options), (error) => isOnceError(error, 'bad_option'))
  }
  for (const waitMs of [Number.NaN, -1, '5'] as never[]) {
    await assert.rejects(leased.claim(who('k'), 1, { waitMs }), (error) => isOnceError(error, 'bad_option'))
  }
  for (const parts of [undefined, null, 'k'] as never[]) {
    await assert.rejects(leased.run(parts, 1, never), (error) => isOnceError(error, 'bad_identity'))
    await assert.rejects(leased.claim(parts, 1), (error) => isOnceError(error, 'bad_identity'))
    await assert.rejects(written.run(parts, 1, never), (error) => isOnceError(error, 'bad_identity'))
  }
  assert.deepEqual(kinds(events), [])
  assert.deepEqual((await once.list({}, { limit: 10 })).rows, [])
})

onEveryStore('a `fingerprint` that returns undefined is refused: every payload would be the same', async (bench) => {
  const { once, events } = bench
  const wrong = (input: { orderId?: string }) => input.orderId
  const leased = once.operation({ name: 'leased', effect: 'external', fingerprint: wrong })
  const written = once.operation({ name: 'written', effect: 'transaction', fingerprint: wrong })
  const older = once.operation({ name: 'older', effect: 'external', shape: 2, shapes: { 1: wrong } })
  const refused = (error: unknown) => isOnceError(error, 'bad_input') && error.message.includes('`fingerprint`')
  await assert.rejects(leased.run(who('k'), {}, never), refused)
  await assert.rejects(leased.claim(who('k'), {}), refused)
  await assert.rejects(written.run(who('k'), {}, never), refused)
  await assert.rejects(older.run(who('k'), {}, never), (error) => isOnceError(error, 'bad_input'))
  assert.deepEqual(kinds(events), [])
  // Where there is nothing to compare, null says so; and a command may have no input at all.
  const any = once.operation({ name: 'any', effect: 'external', fingerprint: () => null })
  assert.equal(await any.run(who('k'), {}, () => 1), 1)
  const bare = once.operation({ name: 'bare', effect: 'external' })
  assert.equal(await bare.run(who('k'), undefined, () => 1), 1)
})

onEveryStore('a copy of a context has all its members, and no key is derived after the lease', async (bench) => {
  const { once } = bench
  const members = ['attach', 'attemptNumber', 'derive', 'effectKey', 'fence', 'note', 'pointer', 'signal']
  const of = (attempt: EffectContext) => Object.keys({ ...attempt }).sort()
  const leased = once.operation({ name: 'leased', effect: 'external' })
  await leased.run(who('k'), 1, async (attempt) => {
    const copy = { ...attempt }
    assert.deepEqual(of(attempt), members)
    assert.equal(copy.effectKey, attempt.effectKey)
    assert.equal(copy.signal, attempt.signal)
    assert.equal(copy.derive('refund'), attempt.derive('refund'))
    await copy.attach({ type: 'order', id: 'o-1' })
    assert.deepEqual(attempt.pointer, { type: 'order', id: 'o-1' })
  })
  const written = once.operation({ name: 'written', effect: 'transaction' })
  const left = await written.execute(who('k'), 1, (context) => {
    assert.deepEqual(of(context), [...members, 'outbox', 'tx', 'unique'].sort())
    return undefined
  })
  assert.equal(left.kind, 'executed')
  const guard = createGuard<string>({ ledger: once, name: 'g', withinMs: MINUTE, identity: (text) => ['acme', text] })
  await guard.send('hello', async (attempt) => {
    assert.ok(attempt !== null)
    const copy = { ...attempt }
    assert.deepEqual([copy.effectKey, copy.fence, copy.signal], [attempt.effectKey, attempt.fence, attempt.signal])
    await copy.attach({ type: 'message', id: 'm-1' })
    assert.deepEqual(attempt.pointer, { type: 'message', id: 'm-1' })
  })
  const claimed = await leased.claim(who('c'), 1)
  assert.ok(claimed.kind === 'first_attempt')
  const copied = { ...claimed.lease }
  assert.equal(copied.effectKey, claimed.lease.effectKey)
  await copied.settle({ kind: 'succeeded', value: 1, pointer: null })
  assert.equal((await leased.claim(who('c'), 1)).kind, 'replay_success')

  let kept: EffectContext | null = null
  await written.run(who('over'), 1, (context) => {
    kept = context
  })
  const over = kept as EffectContext | null
  assert.ok(over !== null)
  const isOver = (error: unknown) => isOnceError(error, 'lease_over')
  assert.ok(over.signal.aborted && { ...over }.signal.aborted)
  assert.match(over.effectKey, /^[0-9a-f]{32}$/)
  assert.throws(() => over.derive('refund'), isOver)
  await assert.rejects(over.attach({ type: 'order', id: 'o-1' }), isOver)
})
