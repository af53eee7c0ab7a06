import assert from 'node:assert/strict'
import type { ProbeAnswer } from 'onceonly'
import { cannotTell, DAY, failed, happened, isOnceError, notFound, prevented, rerun, SECOND, succeeded } from 'onceonly'
import { kinds, onEveryStore, who } from '../../support/ledger/worlds.ts'

const LAPSE_MS = 36 * SECOND
const never = () => assert.fail('the effect ran again')

onEveryStore(
  'an operator resolves an unknown: succeeded, failed or rerun, fenced and recorded',
  async ({ once, events }) => {
    const op = once.operation({ name: 'x', effect: 'external' })
    const make = async (key: string) => {
      await assert.rejects(
        op.run(who(key), 1, () => {
          throw new Error('time-out')
        }),
        (error) => isOnceError(error, 'outcome_unknown'),
      )
      return { ...who(key), operation: 'x' }
    }
    const done = await make('done')
    const view = await once.get(done)
    assert.ok(view?.record.state === 'unknown')
    await assert.rejects(once.resolve(done, rerun, { ifFence: view.record.fence + 1 }), (error) =>
      isOnceError(error, 'fence_moved'),
    )
    await once.resolve(done, succeeded({ receipt: 1 }), { by: 'ann', ifFence: view.record.fence })
    assert.deepEqual(await op.execute(who('done'), 1, never), { kind: 'replayed', value: { receipt: 1 } })
    const after = await once.get(done)
    assert.ok((after?.record.fence ?? 0) > view.record.fence)
    assert.ok(after?.record.history.some((entry) => entry.what === 'resolved' && entry.note?.includes('ann')))
    await assert.rejects(once.resolve(done, rerun), (error) => isOnceError(error, 'not_resolvable'))

    await once.resolve(await make('no'), failed(new Error('the bank says no')))
    await assert.rejects(op.run(who('no'), 1, never), (error) => isOnceError(error, 'effect_failed'))

    await once.resolve(await make('again'), rerun)
    assert.deepEqual(await op.execute(who('again'), 1, () => 'second'), { kind: 'executed', value: 'second' })

    await assert.rejects(once.resolve({ ...who('nothing'), operation: 'x' }, rerun), (error) =>
      isOnceError(error, 'not_found'),
    )
    assert.equal(kinds(events).filter((kind) => kind === 'resolved').length, 3)
  },
)

onEveryStore(
  'release takes a running claim away: the holder can write nothing, the next one runs',
  async ({ once }) => {
    const op = once.operation({ name: 'r', effect: 'external', whileRunning: 'conflict' })
    const identity = { ...who('k'), operation: 'r' }
    const claimed = await op.claim(who('k'), 1)
    assert.ok(claimed.kind === 'first_attempt')
    await once.release(identity, { by: 'ann' })
    await assert.rejects(claimed.lease.settle(succeeded('stale')), (error) => isOnceError(error, 'lease_lost'))
    assert.equal(await op.run(who('k'), 1, () => 'fresh'), 'fresh')
    await assert.rejects(claimed.lease.settle(succeeded('stale')), (error) => isOnceError(error, 'lease_lost'))
    assert.deepEqual(await op.execute(who('k'), 1, never), { kind: 'replayed', value: 'fresh' })
    await assert.rejects(once.release(identity), (error) => isOnceError(error, 'not_resolvable'))
  },
)

onEveryStore(
  'the reconciler finds lapsed leases by itself and gives up unknowns after their time',
  async ({ world, once, second, events }) => {
    const x = { name: 'x', effect: 'external', unknownMs: DAY } as const
    const r = { name: 'r', effect: 'repeatable' } as const
    const dead = await second()
    const deadX = dead.operation(x)
    const deadR = dead.operation(r)
    once.operation(x)
    const op = once.operation(r)
    await deadX.claim(who('x'), 1)
    await deadR.claim(who('r'), 1)
    await once.upkeep.reconcile()
    assert.equal(kinds(events).includes('lapsed'), false)
    assert.deepEqual(await once.lapsed(), [])
    await world.advance(LAPSE_MS)
    assert.equal((await once.lapsed()).length, 2)
    await once.upkeep.reconcile()
    assert.equal((await once.get({ ...who('x'), operation: 'x' }))?.record.state, 'unknown')
    assert.equal((await once.get({ ...who('r'), operation: 'r' }))?.record.state, 'failed_retryable')
    assert.deepEqual(await once.lapsed(), [])
    assert.equal((await op.execute(who('r'), 1, () => 1)).kind, 'executed')
    await world.advance(DAY)
    await once.upkeep.reconcile()
    const view = await once.get({ ...who('x'), operation: 'x' })
    assert.ok(view?.record.state === 'failed_terminal' && view.record.outcome.data?.includes('abandoned_unknown'))
    assert.ok(kinds(events).includes('abandoned_unknown'))
  },
)

onEveryStore(
  'a probe reports the outcome, is retried with back-off, and "not found" counts only after the longest duration',
  async ({ world, once, second, events }) => {
    const answers = new Map<string, ProbeAnswer>()
    let asked = 0
    const define = {
      name: 'p',
      effect: 'external',
      maxRunMs: 60 * SECOND,
      probe: async ({ key }: { key: string }) => {
        asked++
        return answers.get(key) ?? cannotTell
      },
    } as const
    // Returns instead of throwing, because a thrown error would also be unknown.
    const again = () => 'it ran again'
    const dead = (await second()).operation(define)
    const op = once.operation(define)
    for (const key of ['happened', 'failed', 'prevented', 'notFound', 'cannotTell']) await dead.claim(who(key), 1)
    answers.set('happened', happened({ receipt: 9 }))
    answers.set('failed', { answer: 'failed', error: new Error('declined') })
    answers.set('prevented', prevented)
    answers.set('notFound', notFound)
    await world.advance(LAPSE_MS)
    await once.upkeep.reconcile()
    assert.equal(asked, 5)
    assert.deepEqual(await op.execute(who('happened'), 1, never), { kind: 'replayed', value: { receipt: 9 } })
    await assert.rejects(op.run(who('failed'), 1, never), (error) => isOnceError(error, 'effect_failed'))
    assert.equal((await op.execute(who('prevented'), 1, () => 'ran')).kind, 'executed')
    await assert.rejects(op.run(who('notFound'), 1, again), (error) => isOnceError(error, 'outcome_unknown'))
    await once.upkeep.reconcile()
    assert.equal(asked, 5, 'asked again before its back-off')
    await world.advance(60 * SECOND)
    await once.upkeep.reconcile()
    assert.equal(asked, 7)
    assert.equal((await op.execute(who('notFound'), 1, () => 'ran')).kind, 'executed')
    await assert.rejects(op.run(who('cannotTell'), 1, again), (error) => isOnceError(error, 'outcome_unknown'))
    assert.equal(kinds(events).filter((kind) => kind === 'probed').length, 7)
  },
)

onEveryStore(
  'a probe that hangs or answers nonsense delays no other caller',
  async ({ world, once, second, events }) => {
    const define = {
      name: 'hang',
      effect: 'external',
      whileRunning: { waitMs: 300 },
      probe: async ({ key }: { key: string }) => {
        if (key === 'nonsense') return undefined as never
        if (key === 'ending') return failed(new Error('declined')) as never
        return new Promise<never>(() => {})
      },
    } as const
    const dead = (await second()).operation(define)
    const ledger = await second()
    const op = ledger.operation(define)
    for (const key of ['nonsense', 'ending', 'silent']) await dead.claim(who(key), 1)
    await world.advance(LAPSE_MS)
    const silent = await op.execute(who('silent'), 1, never)
    assert.ok(silent.kind === 'refused' && silent.error.code === 'outcome_unknown')
    // The probe is given up after half a minute with an event; the caller has its answer before.
    assert.equal(kinds(events).includes('background_failed'), false, 'the caller waits as long as it said')
    // A long wait, so that a slow server has time to answer.
    const patient = (await second()).operation({ ...define, whileRunning: { waitMs: 60 * SECOND } })
    const declined = await patient.execute(who('ending'), 1, never)
    assert.ok(declined.kind === 'failed' && declined.failure.message === 'declined')
    const unclear = await patient.execute(who('nonsense'), 1, never)
    assert.ok(unclear.kind === 'refused' && unclear.error.code === 'outcome_unknown')
    assert.ok(kinds(events).includes('background_failed'))
    assert.equal((await once.count()).unknown, 2)
  },
)

onEveryStore('operators list, count and see the busiest; the sweep removes what expired', async ({ world, once }) => {
  const op = once.operation({ name: 'o', effect: 'external', retainMs: DAY })
  for (let i = 0; i < 25; i++) await op.run(who(`k${i}`), 1, () => 1)
  await assert.rejects(
    op.run(who('lost'), 1, () => {
      throw new Error('?')
    }),
  )
  await op.run(who('k0'), 1, never)
  await op.execute(who('k0'), 2, never)
  assert.deepEqual(await once.count(), {
    in_progress: 0,
    succeeded: 25,
    failed_terminal: 0,
    failed_retryable: 0,
    unknown: 1,
  })
  const keys: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof once.list>> = await once.list(
      { operation: 'o', state: 'succeeded' },
      { limit: 10, cursor },
    )
    assert.ok(page.rows.length <= 10)
    keys.push(...page.rows.map(({ record }) => record.identity.key))
    cursor = page.cursor
  } while (cursor !== null)
  assert.equal(keys.length, 25)
  assert.equal(keys[0], 'k24', 'newest first')
  assert.equal((await once.list({ key: 'k3' })).rows.length, 1)
  assert.equal((await once.list({ tenant: 'unknown' })).rows.length, 0)
  const [busiest] = await once.busiest()
  assert.deepEqual(busiest, {
    tenant: 'acme',
    caller: 'ann',
    operation: 'o',
    claims: busiest?.claims,
    replays: 1,
    conflicts: 1,
    inProgress: 0,
  })
  const view = await once.get({ ...who('k0'), operation: 'o' })
  assert.deepEqual([view?.replays, view?.conflicts], [1, 1])
  await world.advance(DAY)
  assert.equal((await once.count()).succeeded, 0, 'expired is invisible at once')
  assert.equal(await once.upkeep.sweep(), 25)
  assert.equal((await once.count()).unknown, 1)
})

onEveryStore(
  'a unique claim is permanent, outlives retention, and belongs to the tenant',
  async ({ world, once, second }) => {
    const claim = (owner: string, tenant = 'acme') => once.unique(tenant, 'payment.merchantReference', 'R-1', { owner })
    assert.deepEqual(await claim('a'), { kind: 'claimed' })
    assert.deepEqual(await claim('a'), { kind: 'claimed' })
    const taken = await claim('b')
    assert.ok(taken.kind === 'taken' && taken.owner === 'a')
    assert.deepEqual(await claim('b', 'other'), { kind: 'claimed' })
    await world.advance(1_000 * DAY)
    await once.upkeep.sweep()
    assert.equal((await claim('b')).kind, 'taken')
    const there = await second()
    const race = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 ? once : there).unique('acme', 'ref', 'R-2', { owner: `o${i}` })),
    )
    assert.equal(race.filter(({ kind }) => kind === 'claimed').length, 1)
  },
)
