import assert from 'node:assert/strict'
import type { Execution, LeasedOperation } from 'onceonly'
import { final, isOnceError, notDone, SECOND } from 'onceonly'
import { onEveryStore, who } from '../../support/ledger/worlds.ts'

const LAPSE_MS = 36 * SECOND
const boom = new Error('boom')

function thrower(thrown: unknown) {
  return () => {
    throw thrown
  }
}

function codeOf(execution: Execution<unknown>): string {
  assert.ok(execution.kind === 'refused' || execution.kind === 'failed', `got ${execution.kind}`)
  return execution.error.code
}

/** Claims and dies: the lease is never renewed and never settled. */
async function die(operation: LeasedOperation<unknown>, key: string): Promise<void> {
  const claimed = await operation.claim(who(key), null)
  assert.equal(claimed.kind, 'first_attempt')
}

onEveryStore(
  'repeatable: throw and notDone may be tried again, final is final, a lapse is reclaimed',
  async ({ world, once, second }) => {
    const define = { name: 'r', effect: 'repeatable', whileRunning: 'conflict' } as const
    const op = once.operation<unknown>(define)
    assert.equal(codeOf(await op.execute(who('throw'), null, thrower(boom))), 'not_done')
    assert.deepEqual(await op.execute(who('throw'), null, () => 'second'), { kind: 'executed', value: 'second' })

    const later = await op.execute(who('notDone'), null, thrower(notDone(boom, { retryAfterMs: 5_000 })))
    assert.equal(codeOf(later), 'not_done')
    assert.equal(codeOf(await op.execute(who('notDone'), null, () => 'early')), 'retry_later')
    await world.advance(5_000)
    assert.deepEqual(await op.execute(who('notDone'), null, () => 'later'), { kind: 'executed', value: 'later' })

    const refused = await op.execute(who('final'), null, thrower(final(Object.assign(boom, { code: 'NO_FUNDS' }))))
    assert.equal(codeOf(refused), 'effect_failed')
    const replay = await op.execute(who('final'), null, () => assert.fail('ran again'))
    assert.ok(replay.kind === 'failed' && replay.replayed)
    assert.deepEqual(replay.failure, { name: 'Error', message: 'boom', code: 'NO_FUNDS' })

    const dead = (await second()).operation<unknown>(define)
    await die(dead, 'lapse')
    assert.equal(codeOf(await op.execute(who('lapse'), null, () => 'early')), 'in_progress')
    await world.advance(LAPSE_MS)
    const numbers: number[] = []
    const again = await op.execute(who('lapse'), null, (attempt) => void numbers.push(attempt.attemptNumber))
    assert.equal(again.kind, 'executed')
    assert.deepEqual(numbers, [2])
  },
)

onEveryStore(
  'external: a plain throw and a lapse are unknown and never run again by themselves',
  async ({ world, once, second }) => {
    const define = { name: 'x', effect: 'external', whileRunning: 'conflict' } as const
    const op = once.operation<unknown>(define)
    // Counted, because an error of an external effect would also be unknown.
    let again = 0
    const mustNotRun = () => void again++

    const unknown = await op.execute(who('throw'), null, thrower(boom))
    assert.equal(codeOf(unknown), 'outcome_unknown')
    assert.ok(unknown.kind === 'refused' && unknown.error.cause === boom && unknown.error.applied === 'maybe')
    assert.equal(codeOf(await op.execute(who('throw'), null, mustNotRun)), 'outcome_unknown')

    assert.equal(codeOf(await op.execute(who('notDone'), null, thrower(notDone(boom)))), 'not_done')
    assert.deepEqual(await op.execute(who('notDone'), null, () => 1), { kind: 'executed', value: 1 })

    assert.equal(codeOf(await op.execute(who('final'), null, thrower(final(boom)))), 'effect_failed')
    assert.equal(codeOf(await op.execute(who('final'), null, mustNotRun)), 'effect_failed')

    const dead = (await second()).operation<unknown>(define)
    await die(dead, 'lapse')
    await world.advance(LAPSE_MS)
    assert.equal(codeOf(await op.execute(who('lapse'), null, mustNotRun)), 'outcome_unknown')
    assert.equal((await once.get({ ...who('lapse'), operation: 'x' }))?.record.state, 'unknown')
    assert.equal(again, 0)

    // A reservation that never started is free again, whatever the policy.
    const reserved = await dead.claim(who('reserved'), null, { reserve: true })
    assert.equal(reserved.kind, 'first_attempt')
    await world.advance(LAPSE_MS)
    assert.deepEqual(await op.execute(who('reserved'), null, () => 'ran'), { kind: 'executed', value: 'ran' })
  },
)

onEveryStore('transaction: throw leaves nothing, final undoes the writes and is recorded', async ({ world, once }) => {
  const op = once.operation<unknown>({ name: 't', effect: 'transaction' })
  await assert.rejects(
    op.run(who('throw'), null, async ({ tx }) => {
      await world.write(tx, 'throw')
      throw boom
    }),
    boom,
  )
  assert.equal(await once.get({ ...who('throw'), operation: 't' }), null)
  await op.run(who('throw'), null, ({ tx }) => world.write(tx, 'second'))

  await assert.rejects(op.run(who('notDone'), null, thrower(notDone(boom))), boom)
  assert.equal(await once.get({ ...who('notDone'), operation: 't' }), null)

  const final1 = op.run(who('final'), null, async ({ tx }) => {
    await world.write(tx, 'final')
    throw final(boom)
  })
  await assert.rejects(final1, (error) => isOnceError(error, 'effect_failed') && error.cause === boom)
  const replay = await op.execute(who('final'), null, () => assert.fail('ran again'))
  assert.ok(replay.kind === 'failed' && replay.replayed)
  assert.deepEqual(await world.written(), ['second'])
})
