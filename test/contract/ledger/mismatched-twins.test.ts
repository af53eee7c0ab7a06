import assert from 'node:assert/strict'
import { isOnceError, limits } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import { onEveryStore } from '../../support/ledger/worlds.ts'

const who = { tenant: 'acme', caller: 'web', key: 'k' }
const never = () => assert.fail('the effect ran')

onEveryStore('another payload is refused at once, also while a duplicate waits for another process', async (bench) => {
  const { once, second, events } = bench
  const define = { name: 'pay', effect: 'external', whileRunning: { waitMs: limits.waitMaxMs } } as const
  const held = await (await second()).operation<number>(define).claim(who, 1)
  assert.ok(held.kind === 'first_attempt')
  const pay = once.operation<number>(define)
  const waiting = pay.execute(who, 1, never)
  let ended = false
  void waiting.finally(() => (ended = true))
  // A duplicate waits in this process for the other one's attempt; a request with another payload does not.
  for (let again = 0; again < 3; again++) {
    const refused = await pay.execute(who, 2, never)
    assert.ok(refused.kind === 'refused' && isOnceError(refused.error, 'key_reused'), refused.kind)
  }
  assert.equal(ended, false, 'the twin still waits')
  await held.lease.settle({ kind: 'succeeded', value: 'paid', pointer: null })
  assert.ok(['joined', 'replayed'].includes((await waiting).kind))
  await until('the conflicts were reported', () => events.filter(({ kind }) => kind === 'key_reused').length === 3)
})
