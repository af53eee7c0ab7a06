import assert from 'node:assert/strict'
import { suite } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Execution } from 'onceonly'
import { createLedger, isOnceError, limits, MINUTE, SECOND } from 'onceonly'
import { errorTables } from 'onceonly/errors'
import { until } from '../../../src/testing/until.ts'
import { who } from '../../support/place.ts'
import { onLink } from './link.ts'

const never = () => assert.fail('the effect ran')
/** Whatever waited for another call first would be late by a whole deadline; no machine is that busy. */
const SLACK_MS = 0.8 * limits.storeCallMs

/** How a call ended, and after how long. */
async function timed(work: () => Promise<unknown>): Promise<{ code: string; tookMs: number }> {
  const startedMs = performance.now()
  const code = await work().then(
    () => 'answered',
    (error: unknown) => (isOnceError(error) ? error.code : String(error)),
  )
  return { code, tookMs: performance.now() - startedMs }
}

/** Retries as a client does. */
async function insist<T>(ask: () => Promise<Execution<T>>): Promise<T> {
  const answered = await until('the claim is free', async () => {
    const execution = await ask()
    if ('value' in execution) return execution
    assert.ok(/^(in_progress|retry_later)$/.test(execution.error.code), execution.error.code)
    return null
  })
  return answered.value
}

// They mostly wait, for deadlines of 10 and of 30 seconds.
suite('a server that stops answering', { concurrency: true }, () => {
  onLink('every call ends by its deadline, and work continues afterwards', async (link) => {
    const { once, proxy, place } = link
    const external = once.operation({ name: 'external', effect: 'external', whileRunning: 'conflict' })
    const joined = once.operation({ name: 'joined', effect: 'repeatable', whileRunning: { waitMs: 2 * SECOND } })
    await external.run(who('before'), 1, () => 'before')
    const running = joined.claim(who('joined'), 1)
    assert.equal((await running).kind, 'first_attempt')
    proxy.pause()
    // More at once than there are lanes, and later ones: a call must not wait for the ones that hang.
    const calls = [0, 0, 0, 1, 4, 8].map(async (afterSeconds, n) => {
      await sleep(afterSeconds * SECOND)
      return { n, ...(await timed(() => external.run(who(`paused-${n}`), 1, never))) }
    })
    const reads = [timed(() => once.get({ ...who('before'), operation: 'external' })), timed(() => once.count())]
    const waiting = timed(() => joined.run(who('joined'), 1, never))
    for (const call of [...calls, ...reads, waiting]) {
      const { code, tookMs } = await call
      assert.equal(code, 'store_unavailable')
      assert.ok(tookMs < limits.storeCallMs + SLACK_MS, `${JSON.stringify(await call)}`)
    }
    proxy.resume()
    // The same store and ledger, without a restart. Claims that got through in the end, and whose callers had gone, were
    // given back: their effects never began, so none is unknown.
    for (let n = 0; n < calls.length; n++)
      assert.equal(await insist(() => external.execute(who(`paused-${n}`), 1, () => n)), n)
    await place.advance(MINUTE)
    await once.upkeep.reconcile()
    assert.equal((await once.count()).unknown, 0)
    assert.equal(await external.run(who('after'), 1, () => 'after'), 'after')
  })

  onLink('a transaction ends, too, and nothing of it stays', async ({ once, proxy, place }) => {
    const transaction = once.operation({ name: 'transaction', effect: 'transaction' })
    await transaction.run(who('before'), 1, () => 'before')
    const asked = timed(() =>
      transaction.run(who('k'), 1, async ({ tx }) => {
        await tx.query('insert into business (key, value) values (?, ?)', ['k', 'lost'])
        proxy.pause()
        await tx.query('select 1')
      }),
    )
    // The server answers again only after the transaction has ended.
    assert.equal((await asked).code, 'store_unavailable')
    proxy.resume()
    assert.equal(await transaction.run(who('k'), 1, () => 'later'), 'later')
    assert.deepEqual(await place.business(), [])
  })
})

onLink(
  'a server that cannot be reached at the start is reported clearly, and used as soon as it is there',
  async (link) => {
    const { once, proxy } = link
    proxy.refuse()
    const external = once.operation({ name: 'external', effect: 'external' })
    const transaction = once.operation({ name: 'transaction', effect: 'transaction' })
    for (const ask of [
      () => external.run(who('k'), 1, never),
      () => transaction.run(who('k'), 1, never),
      () => once.get({ ...who('k'), operation: 'external' }),
    ]) {
      await assert.rejects(ask, (error) => {
        assert.ok(isOnceError(error, 'store_unavailable'))
        assert.deepEqual([error.retryable, error.applied], [true, 'no'])
        assert.ok(error.message.includes(errorTables.ledger.store_unavailable.next))
        assert.equal(
          error.message.split(errorTables.ledger.store_unavailable.next).length,
          2,
          'the advice is given once',
        )
        assert.match(error.message, /ECONNREFUSED/)
        return true
      })
    }
    await proxy.accept()
    assert.equal(await external.run(who('k'), 1, () => 'now'), 'now')
    assert.equal(await transaction.run(who('k'), 1, () => 'now'), 'now')
  },
)

onLink('idle connections that were cut are replaced without an error', async (link) => {
  const { once, proxy } = link
  const external = once.operation({ name: 'external', effect: 'external' })
  const transaction = once.operation({ name: 'transaction', effect: 'transaction' })
  for (let round = 0; round < 5; round++) {
    assert.equal(await external.run(who(`e${round}`), 1, () => round), round)
    assert.equal(await transaction.run(who(`t${round}`), 1, () => round), round)
    proxy.cut()
  }
})

onLink('a claim that took longer than its lease begins nothing, and leaves nothing unknown', async (link) => {
  const { once, proxy, place } = link
  const define = { name: 'short', effect: 'external', leaseMs: limits.leaseMinMs, whileRunning: 'conflict' } as const
  const short = once.operation(define)
  await once.operation({ name: 'warm', effect: 'external' }).run(who('warm'), 1, () => 'up')
  proxy.delayMs = 0.6 * limits.leaseMinMs
  const slow = await short.execute(who('k'), 1, never)
  proxy.delayMs = 0
  assert.ok(slow.kind === 'refused' && slow.error.code === 'not_done', slow.kind)
  assert.equal((await once.get({ ...who('k'), operation: 'short' }))?.record.state, 'failed_retryable')
  // Another process, with a lease that a busy machine keeps.
  const patient = createLedger({ store: place.store, background: false })
  const long = patient.operation({ ...define, leaseMs: MINUTE })
  assert.deepEqual(await long.execute(who('k'), 1, () => 'now'), { kind: 'executed', value: 'now' })
  await patient.stop()
})
