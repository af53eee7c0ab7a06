import assert from 'node:assert/strict'
import { type Ledger, notDone, type SqlStore, type SqlTx } from 'onceonly'
import { until } from '../../../../src/testing/until.ts'

const SECONDS = 1_000
const CALL = { timeoutMs: 60_000 }
const by = (key: string) => ({ tenant: 'busy', caller: 'service', key })

/** What a ledger counts and the dashboard shows, although it is no trouble; nothing of it stays. */
export async function makeCounts(store: SqlStore, ledger: Ledger<SqlTx>): Promise<void> {
  const common = { effect: 'repeatable', retainMs: 60 * SECONDS } as const
  const pay = ledger.operation({ ...common, name: 'pay', afterExpiry: 'refuse', refuseMs: 60 * SECONDS })
  const begun = Promise.withResolvers<void>()
  const paid = Promise.withResolvers<string>()
  const first = pay.execute(by('twins'), null, () => {
    begun.resolve()
    return paid.promise
  })
  await begun.promise
  const twin = pay.execute(by('twins'), null, () => assert.fail('it runs'))
  paid.resolve('paid')
  assert.deepEqual([(await first).kind, (await twin).kind], ['executed', 'joined'])

  const later = await pay.execute(by('later'), null, () =>
    Promise.reject(notDone(new Error('busy'), { retryAfterMs: 9 * SECONDS })),
  )
  assert.equal(later.kind, 'refused')
  const early = await pay.execute(by('later'), null, () => 'early')
  assert.equal(early.kind === 'refused' && early.error.code, 'retry_later')

  const mine = ledger.operation({ ...common, name: 'mine', authorize: () => false })
  await mine.execute(by('mine'), null, () => 'mine')
  const shown = await mine.execute(by('mine'), null, () => assert.fail('it runs'))
  assert.equal(shown.kind === 'refused' && shown.error.code, 'not_authorized')

  // A function is no plain data.
  assert.equal((await mine.execute(by('kept'), null, () => () => {})).kind, 'executed')
  // As a failover loses it.
  const lost = await mine.execute(by('lost'), null, () => store.sql.query('delete from onceonly_records'))
  assert.equal(lost.kind, 'executed')

  const again = await pay.execute(by('again'), null, () => 'again')
  assert.equal(again.kind, 'executed')
  await store.clock.advance(60 * SECONDS, CALL)
  await until('its key has expired', async () => {
    const refused = await pay.execute(by('again'), null, () => assert.fail('it runs'))
    return refused.kind === 'refused' && refused.error.code === 'key_expired'
  })
  await store.clock.advance(60 * SECONDS, CALL)
  assert.ok((await ledger.upkeep.sweep()) > 0)
}
