import assert from 'node:assert/strict'
import { DAY, final, isOnceError, MINUTE, released } from 'onceonly'
import { createHeld, kinds, onEveryStore, watchClaims, who } from '../../support/ledger/worlds.ts'

const never = () => assert.fail('the effect ran again')

onEveryStore('twenty concurrent duplicates: one effect, twenty equal answers', async ({ once, events, second }) => {
  const define = { name: 'pay', effect: 'external' } as const
  const ops = [once.operation<unknown>(define), (await second()).operation<unknown>(define)]
  let effects = 0
  const effect = async () => {
    effects++
    await new Promise((resolve) => setTimeout(resolve, 60))
    return { receipt: 7, at: new Date(0), big: 2n ** 70n, bytes: Uint8Array.of(1, 2) }
  }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => (ops[index % 2] ?? never()).execute(who('k'), { cents: 5 }, effect)),
  )
  assert.equal(effects, 1)
  assert.equal(answers.filter(({ kind }) => kind === 'executed').length, 1)
  for (const answer of answers) {
    assert.ok('value' in answer, answer.kind)
    assert.deepEqual(answer.value, { receipt: 7, at: new Date(0), big: 2n ** 70n, bytes: Uint8Array.of(1, 2) })
  }
  assert.equal(events.filter(({ kind }) => kind === 'claimed').length, 1)
})

onEveryStore('an empty result is replayed, never run again', async ({ once }) => {
  const op = once.operation({ name: 'empty', effect: 'external' })
  for (const [key, value] of [
    ['undefined', undefined],
    ['null', null],
    ['text', ''],
    ['zero', 0],
    ['list', []],
  ] as const) {
    assert.deepEqual(await op.run(who(key), {}, () => value), value)
    assert.deepEqual(await op.execute(who(key), {}, never), { kind: 'replayed', value })
  }
})

onEveryStore(
  'another payload under the key conflicts, before and after settling, and changes nothing',
  async ({ once, events }) => {
    const op = once.operation({ name: 'pay', effect: 'external' })
    const held = createHeld<string>()
    const running = op.run(who('k'), { cents: 1 }, held.effect)
    await held.begun
    await assert.rejects(op.run(who('k'), { cents: 2 }, never), (error) => isOnceError(error, 'key_reused'))
    held.finish('one')
    assert.equal(await running, 'one')
    const refused = await op.execute(who('k'), { cents: 2 }, never)
    assert.ok(refused.kind === 'refused' && isOnceError(refused.error, 'key_reused'))
    assert.notEqual(refused.error.details['recorded'], refused.error.details['presented'])
    assert.deepEqual(await op.execute(who('k'), { cents: 1 }, never), { kind: 'replayed', value: 'one' })
    // Member order and number spelling never matter; undefined members are no members.
    const op2 = once.operation({ name: 'order', effect: 'external' })
    await op2.run(who('k'), { a: 1, b: [1, 2] }, () => 1)
    assert.equal((await op2.execute(who('k'), { b: [1, 2], a: 1, c: undefined }, never)).kind, 'replayed')
    assert.equal(kinds(events).filter((kind) => kind === 'key_reused').length, 2)
  },
)

onEveryStore('two tenants, callers, operations or batches never meet', async ({ once }) => {
  const a = once.operation({ name: 'a', effect: 'external' })
  const b = once.operation({ name: 'a:b', effect: 'external' })
  const parts = [
    { tenant: 't', caller: 'c', key: 'k' },
    { tenant: 't', caller: 'c:k', key: 'k' },
    { tenant: 't:c', caller: 'c', key: 'k' },
    { tenant: 't', caller: 'c', key: 'b:k' },
    { tenant: 't', caller: 'c', key: 'k', batch: '1' },
    { tenant: 't', caller: 'c', key: 'k', batch: '11' },
  ]
  for (const part of parts) assert.equal((await a.execute(part, 1, () => 1)).kind, 'executed')
  assert.equal((await b.execute({ tenant: 't', caller: 'c', key: 'k' }, 1, () => 1)).kind, 'executed')
})

onEveryStore(
  'fields are chosen by the operation, and an old shape never turns a retry into a conflict',
  async ({ once, second, events }) => {
    const v1 = once.operation<{ id: number; note: string }>({
      name: 'shape',
      effect: 'external',
      fingerprint: ({ id }) => ({ id }),
    })
    await v1.run(who('k'), { id: 1, note: 'x' }, () => 'one')
    assert.equal((await v1.execute(who('k'), { id: 1, note: 'other' }, never)).kind, 'replayed')
    const both = (await second()).operation<{ id: number; note: string }>({
      name: 'shape',
      effect: 'external',
      shape: 2,
      fingerprint: ({ id, note }) => [id, note],
      shapes: { 1: ({ id }) => ({ id }) },
    })
    assert.equal((await both.execute(who('k'), { id: 1, note: 'new' }, never)).kind, 'replayed')
    const other = await both.execute(who('k'), { id: 2, note: 'new' }, never)
    assert.ok(other.kind === 'refused' && other.error.code === 'key_reused')
    const only2 = (await second()).operation<{ id: number }>({ name: 'shape', effect: 'external', shape: 2 })
    assert.equal((await only2.execute(who('k'), { id: 3 }, never)).kind, 'replayed')
    assert.ok(kinds(events).includes('fingerprint_unverified'))
  },
)

onEveryStore(
  'keep: a pointer is rebuilt, a bare outcome says nothing, an oversize result is never run again',
  async ({ once, events, second }) => {
    const define = {
      name: 'pointer',
      effect: 'external',
      keep: 'pointer',
      pointer: (value: { id: string }) => ({ type: 'order', id: value.id }),
      rebuild: (pointer: { id: string }) => ({ id: pointer.id, rebuilt: true }),
    } as const
    const pointer = once.operation(define)
    assert.deepEqual(await pointer.run(who('k'), 1, () => ({ id: 'o-1', secret: 1 })), { id: 'o-1', secret: 1 })
    const elsewhere = (await second()).operation(define)
    assert.deepEqual(await elsewhere.run(who('k'), 1, never), { id: 'o-1', rebuilt: true })

    const outcome = once.operation({ name: 'outcome', effect: 'external', keep: 'outcome' })
    assert.equal(await outcome.run(who('k'), 1, () => 'secret'), 'secret')
    assert.deepEqual(await outcome.execute(who('k'), 1, never), { kind: 'replayed', value: undefined })

    const small = once.operation({ name: 'small', effect: 'external', maxOutcomeBytes: 100 })
    for (const [key, value] of [
      ['large', 'x'.repeat(101)],
      ['function', () => 1],
    ] as const) {
      assert.equal(await small.run(who(key), 1, () => value), value)
      await assert.rejects(small.run(who(key), 1, never), (error) => isOnceError(error, 'outcome_not_stored'))
    }
    assert.equal(kinds(events).filter((kind) => kind === 'outcome_not_stored').length, 2)
  },
)

onEveryStore('authorisation runs before every replay and for every joiner', async ({ once, events }) => {
  const allowed = new Set<unknown>(['ann'])
  const op = once.operation({
    name: 'secret',
    effect: 'external',
    keep: 'outcome',
    sensitive: true,
    authorize: ({ as }) => allowed.has(as),
  })
  const effect = () => new Promise((resolve) => setTimeout(() => resolve('body'), 30))
  const [first, joiner, stranger] = await Promise.all(
    ['ann', 'ann', 'eve'].map((as) => op.execute(who('k'), 1, effect, { as })),
  )
  assert.equal(first?.kind, 'executed')
  assert.equal(joiner?.kind, 'joined')
  assert.ok(stranger?.kind === 'refused' && stranger.error.code === 'not_authorized')
  allowed.clear()
  await assert.rejects(op.run(who('k'), 1, never, { as: 'ann' }), (error) => isOnceError(error, 'not_authorized'))
  assert.ok(kinds(events).includes('not_authorized'))
})

onEveryStore('after expiry a key is new, or refused for a while, and effect keys are new', async ({ world, once }) => {
  const keys: string[] = []
  const note = (attempt: { effectKey: string }) => void keys.push(attempt.effectKey)
  const fresh = once.operation({ name: 'new', effect: 'external', retainMs: DAY })
  await fresh.run(who('k'), 1, note)
  await world.advance(DAY - MINUTE)
  assert.equal((await fresh.execute(who('k'), 1, never)).kind, 'replayed')
  await world.advance(2 * MINUTE)
  // What was replayed is remembered in the process for a second.
  await new Promise((resolve) => setTimeout(resolve, 1_050))
  // Another payload is no conflict with a record that is gone.
  assert.equal((await fresh.execute(who('k'), 2, note)).kind, 'executed')
  assert.equal(new Set(keys).size, 2)

  const refuse = once.operation({
    name: 'refuse',
    effect: 'external',
    retainMs: DAY,
    afterExpiry: 'refuse',
    refuseMs: DAY,
  })
  await refuse.run(who('k'), 1, () => 'x')
  await world.advance(DAY)
  await assert.rejects(refuse.run(who('k'), 1, never), (error) => isOnceError(error, 'key_expired'))
  await once.upkeep.sweep()
  await assert.rejects(refuse.run(who('k'), 1, never), (error) => isOnceError(error, 'key_expired'))
  await world.advance(DAY)
  await once.upkeep.sweep()
  assert.equal(await refuse.run(who('k'), 1, () => 'again'), 'again')
})

onEveryStore(
  'the policies while a duplicate runs: conflict at once, wait and then conflict, share a retryable failure',
  async ({ world, once, second }) => {
    const define = { name: 'conflict', effect: 'repeatable', whileRunning: 'conflict' } as const
    const here = once.operation(define)
    const there = (await second()).operation(define)
    const held = createHeld<string>()
    const first = here.run(who('k'), 1, held.effect)
    await held.begun
    for (const op of [here, there]) {
      const twin = await op.execute(who('k'), 1, never)
      assert.ok(twin.kind === 'refused' && twin.error.code === 'in_progress' && (twin.error.retryAfterMs ?? 0) > 0)
    }
    held.finish('done')
    assert.equal(await first, 'done')

    const patient = { name: 'wait', effect: 'repeatable', whileRunning: { waitMs: 40 } } as const
    const a = once.operation(patient)
    const b = (await second()).operation(patient)
    const longer = createHeld<string>()
    const running = a.run(who('k'), 1, longer.effect)
    await longer.begun
    await assert.rejects(b.run(who('k'), 1, never), (error) => isOnceError(error, 'in_progress'))
    await assert.rejects(a.run(who('k'), 1, never), (error) => isOnceError(error, 'in_progress'))
    longer.finish('done')
    assert.equal(await running, 'done')

    // Twenty waiters of a failed attempt share its failure; they do not run it one after the other.
    const shared = { name: 'shared', effect: 'repeatable' } as const
    const stores = [watchClaims(await world.another()), watchClaims(await world.another())]
    const [c, d] = await Promise.all(stores.map(async ({ store }) => (await second({ store })).operation(shared)))
    assert.ok(c !== undefined && d !== undefined)
    let effects = 0
    const failing = async () => {
      effects++
      // The attempt outlives the claims of both: a claim after it would rightly run it again.
      await Promise.all(stores.map(({ claimed }) => claimed))
      // Gives the others time to arrive and wait as well.
      await new Promise((resolve) => setTimeout(resolve, 300))
      throw new Error('down')
    }
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? c : d).execute(who('k'), 1, failing)),
    )
    assert.equal(effects, 1)
    for (const each of all)
      assert.ok(each.kind === 'refused' && ['not_done', 'retry_later'].includes(each.error.code), each.kind)
  },
)

onEveryStore('a terminal failure is replayed from the record with its code and data', async ({ once, second }) => {
  const define = { name: 'refused', effect: 'external' } as const
  const refuse = () => {
    throw final(
      Object.assign(new Error('not allowed'), { name: 'CaseError', code: 'CASE_CLOSED', data: { caseId: 5 } }),
    )
  }
  await assert.rejects(once.operation(define).run(who('k'), 1, refuse), (error) => isOnceError(error, 'effect_failed'))
  const replay = await (await second()).operation(define).execute(who('k'), 1, never)
  assert.ok(replay.kind === 'failed' && replay.replayed)
  assert.deepEqual(replay.failure, {
    name: 'CaseError',
    message: 'not allowed',
    code: 'CASE_CLOSED',
    data: { caseId: 5 },
  })
})

onEveryStore(
  'a caller that repeats one key too often is slowed down, where the operation says so',
  async ({ once }) => {
    const op = once.operation({ name: 'spam', effect: 'external', perKeyLimit: { attempts: 2, perMs: 60_000 } })
    await op.run(who('k'), 1, () => 1)
    await op.run(who('k'), 1, never)
    await assert.rejects(
      op.run(who('k'), 1, never),
      (error) => isOnceError(error, 'too_many_attempts') && (error.retryAfterMs ?? 0) > 0,
    )
    await op.run(who('other'), 1, () => 1)
  },
)

onEveryStore(
  'a final failure may carry an answer, and a released claim binds its key to nothing',
  async ({ once, second }) => {
    const define = { name: 'answer', effect: 'external', maxOutcomeBytes: 1_000 } as const
    const op = once.operation(define)
    const there = (await second()).operation(define)
    const answer = { status: 422, body: Uint8Array.of(1, 2, 3) }
    const refuse = () => {
      throw final(new Error('no'), { answer })
    }
    assert.equal((await op.execute(who('final'), 1, refuse)).kind, 'failed')
    const replay = await there.execute(who('final'), 1, never)
    assert.ok(replay.kind === 'failed' && replay.replayed)
    assert.deepEqual(replay.answer, answer)
    const large = () => {
      throw final(new Error('large'), { answer: 'x'.repeat(2_000) })
    }
    await op.execute(who('large'), 1, large)
    const cut = await there.execute(who('large'), 1, never)
    assert.ok(cut.kind === 'failed' && cut.answer === undefined && cut.failure.message === 'large')

    const away = () => {
      throw released(new Error('not signed in'))
    }
    const first = await op.execute(who('free'), { payload: 1 }, away)
    assert.ok(first.kind === 'refused' && first.error.code === 'not_done')
    assert.equal((await there.execute(who('free'), { payload: 2 }, () => 'other payload')).kind, 'executed')
  },
)
