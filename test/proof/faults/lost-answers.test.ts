import assert from 'node:assert/strict'
import { createLedger, isOnceError } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import { who } from '../../support/place.ts'
import { onLink } from './link.ts'

const never = () => assert.fail('the effect ran again')
/** The whole statement: READ COMMITTED is another one. */
const COMMIT = 'COMMIT\0'
const external = { name: 'external', effect: 'external', whileRunning: 'conflict' } as const
const transaction = { name: 'transaction', effect: 'transaction' } as const

onLink('a claim whose acknowledgement was lost is our own claim, not a rival', async ({ once, loseAnswerTo }) => {
  const operation = once.operation(external)
  await operation.run(who('warm'), 1, () => 'up')
  const claim = loseAnswerTo('the-lost-claim')
  let effects = 0
  const answer = await operation.execute(who('the-lost-claim'), 1, ({ attemptNumber }) => {
    effects++
    return attemptNumber
  })
  assert.ok(claim.lost)
  assert.deepEqual(answer, { kind: 'executed', value: 1 })
  assert.equal(effects, 1)
  const view = await once.get({ ...who('the-lost-claim'), operation: 'external' })
  assert.equal(view?.record.attempts, 1)
})

onLink('a settle whose acknowledgement was lost is repeated, harmlessly', async ({ once, events, loseAnswerTo }) => {
  const operation = once.operation(external)
  const settle = loseAnswerTo('the-lost-outcome')
  assert.deepEqual(await operation.execute(who('k'), 1, () => 'the-lost-outcome'), {
    kind: 'executed',
    value: 'the-lost-outcome',
  })
  assert.ok(settle.lost)
  const view = await once.get({ ...who('k'), operation: 'external' })
  assert.ok(view?.record.state === 'succeeded' && view.record.history.length === 0)
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['claimed', 'settled'],
  )
})

onLink('a pointer whose acknowledgement was lost is attached', async ({ once, place, loseAnswerTo }) => {
  const operation = once.operation(external)
  const attach = loseAnswerTo('the-lost-pointer')
  await operation.run(who('k'), 1, async (attempt) => {
    await attempt.attach({ type: 'mail', id: 'the-lost-pointer' })
    const [record] = await pointersOf(place.store)
    assert.deepEqual(record, { type: 'mail', id: 'the-lost-pointer' })
  })
  assert.ok(attach.lost)
})

async function pointersOf(store: Parameters<typeof createLedger>[0]['store']) {
  const { rows } = await store.queries.list({}, { limit: 10, cursor: null }, { timeoutMs: 60_000 })
  return rows.map(({ record }) => record.pointer)
}

onLink('the lost answer to COMMIT: one business row, and the answer is the effect’s own', async (link) => {
  const { once, place, loseAnswerTo } = link
  const operation = once.operation(transaction)
  // Making the tables commits, too.
  await operation.run(who('warm'), 1, () => 'up')
  let effects = 0
  const commit = loseAnswerTo(COMMIT)
  const answer = await operation.execute(who('k'), 1, async ({ tx, attemptNumber, effectKey }) => {
    effects++
    await tx.query('insert into business (key, value) values (?, ?)', ['k', 'once'])
    return { attempt: attemptNumber, key: effectKey.length }
  })
  assert.ok(commit.lost)
  assert.deepEqual(answer, { kind: 'executed', value: { attempt: 1, key: 32 } })
  assert.equal(effects, 1)
  assert.deepEqual(await place.business(), [{ key: 'k', value: 'once' }])
  assert.equal((await operation.execute(who('k'), 1, never)).kind, 'replayed')
})

onLink('a lost response to COMMIT that cannot be checked any more is reported as possibly applied', async (link) => {
  const { once, place, proxy, loseAnswerTo } = link
  const operation = once.operation(transaction)
  await operation.run(who('warm'), 1, () => 'up')
  const commit = loseAnswerTo(COMMIT)
  const asked = operation.execute(who('k'), 1, async ({ tx }) => {
    await tx.query('insert into business (key, value) values (?, ?)', ['k', 'in doubt'])
    proxy.refuse()
    return 'in doubt'
  })
  await assert.rejects(asked, (error) => {
    assert.ok(isOnceError(error, 'store_unavailable'))
    // It was committed: "no" would let a caller do it again under another key.
    assert.equal(error.applied, 'maybe')
    return true
  })
  assert.ok(commit.lost)
  assert.deepEqual(await place.business(), [{ key: 'k', value: 'in doubt' }])
  await proxy.accept()
  assert.deepEqual(await operation.execute(who('k'), 1, never), { kind: 'replayed', value: 'in doubt' })
})

onLink('a connection cut in the middle of a transaction: rolled back, run again, one row', async (link) => {
  const { once, place, proxy } = link
  const operation = once.operation(transaction)
  let effects = 0
  const answer = await operation.execute(who('k'), 1, async ({ tx, attemptNumber }) => {
    effects++
    await tx.query('insert into business (key, value) values (?, ?)', ['k', `run ${effects}`])
    if (effects === 1) proxy.cut()
    await tx.query('select 1')
    return attemptNumber
  })
  assert.deepEqual(answer, { kind: 'executed', value: 1 })
  assert.equal(effects, 2)
  assert.deepEqual(await place.business(), [{ key: 'k', value: 'run 2' }])
})

onLink('an external effect that ran while the store was cut off is recorded when it is back', async (link) => {
  const { once, proxy, events, place } = link
  const operation = once.operation({ ...external, leaseMs: 300_000 })
  let effects = 0
  const answer = await operation.execute(who('k'), 1, () => {
    effects++
    proxy.refuse()
    proxy.cut()
    return 'happened'
  })
  // The caller is not kept waiting for a store that is away.
  assert.deepEqual(answer, { kind: 'executed', value: 'happened' })
  assert.ok(events.some((event) => event.kind === 'settle_failed' && event.retrying))
  await proxy.accept()
  await until('the outcome is recorded', () => events.some(({ kind }) => kind === 'settled'))
  const direct = createLedger({ store: place.store, background: false })
  assert.deepEqual(await direct.operation(external).execute(who('k'), 1, never), {
    kind: 'replayed',
    value: 'happened',
  })
  assert.equal(effects, 1)
  await direct.stop()
})
