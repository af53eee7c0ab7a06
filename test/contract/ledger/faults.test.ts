import assert from 'node:assert/strict'
import type { Ledger, TransactionalStore } from 'onceonly'
import { createLedger, isOnceError, OnceError } from 'onceonly'
import type { Request } from '../../../src/ledger/core/request.ts'
import { flushesOf } from '../../support/flushes.ts'
import type { Bench } from '../../support/ledger/worlds.ts'
import { kinds, onEveryStore, who } from '../../support/ledger/worlds.ts'

const never = () => assert.fail('the effect ran again')
type Fault = 'pass' | 'lose_request' | 'lose_answer' | 'refuse'

/** A store whose network fails as the script says, request by request. */
function through(store: TransactionalStore<unknown>, script: (request: Request) => Fault): TransactionalStore<unknown> {
  const away = (applied: 'no' | 'maybe') => new OnceError('store_unavailable', 'The link was cut.', { applied })
  return {
    ...store,
    claims: {
      ...store.claims,
      async apply(request, call) {
        const fault = script(request)
        if (fault === 'refuse') throw away('no')
        if (fault === 'lose_request') throw away('maybe')
        const applied = await store.claims.apply(request, call)
        if (fault === 'lose_answer') throw away('maybe')
        return applied
      },
    },
  }
}

function ledgerOver({ world, events }: Bench, script: (request: Request) => Fault): Ledger<unknown> {
  return createLedger({ store: through(world.store, script), background: false, on: (event) => events.push(event) })
}

/** Each kind of request fails this way the first `times` times. */
function firstTimes(kind: Request['kind'], times: number, fault: Fault): (request: Request) => Fault {
  let left = times
  return (request) => (request.kind === kind && left-- > 0 ? fault : 'pass')
}

onEveryStore('the lost acknowledgement of our own claim is recognised, not taken for a rival', async (bench) => {
  const once = ledgerOver(bench, firstTimes('claim', 2, 'lose_answer'))
  const op = once.operation({ name: 'own', effect: 'external', whileRunning: 'conflict' })
  assert.deepEqual(await op.execute(who('k'), 1, ({ attemptNumber }) => attemptNumber), { kind: 'executed', value: 1 })
  await once.stop()
})

onEveryStore('when recording fails the caller still gets its result, and it is recorded later', async (bench) => {
  for (const fault of ['lose_request', 'lose_answer', 'refuse'] as const) {
    // Longer than the ledger repeats the request at once, so that the background loop has to continue.
    let broken = true
    const once = ledgerOver(bench, (request) => (request.kind === 'settle' && broken ? fault : 'pass'))
    const op = once.operation({ name: `settle.${fault}`, effect: 'external', whileRunning: 'conflict' })
    let effects = 0
    const running = op.run(who('k'), 1, () => ++effects)
    if (fault !== 'refuse') setTimeout(() => void (broken = false), 300)
    assert.equal(await running, 1)
    broken = false
    await once.stop()
    const after = bench.once.operation({ name: `settle.${fault}`, effect: 'external' })
    assert.deepEqual(await after.execute(who('k'), 1, never), { kind: 'replayed', value: 1 })
  }
  assert.ok(kinds(bench.events).includes('settle_failed'))
})

onEveryStore('a settle whose record is gone writes it anew and reports the loss', async (bench) => {
  const { once, world, events } = bench
  if (world.store.name !== 'memory') {
    const op = once.operation({ name: 'lost', effect: 'external' })
    const value = await op.run(who('k'), 1, async () => {
      await world.store.sql?.query('delete from onceonly_records')
      return 'happened'
    })
    assert.equal(value, 'happened')
    assert.ok(kinds(events).includes('record_lost'))
    assert.deepEqual(await op.execute(who('k'), 1, never), { kind: 'replayed', value: 'happened' })
  }
})

onEveryStore(
  'a store that is down fails closed with a typed, retryable error, and is used again when it is back',
  async (bench) => {
    let down = true
    const once = ledgerOver(bench, () => (down ? 'refuse' : 'pass'))
    const op = once.operation({ name: 'down', effect: 'external' })
    await assert.rejects(op.run(who('k'), 1, never), (error) => {
      return isOnceError(error, 'store_unavailable') && error.retryable && error.applied === 'no'
    })
    down = false
    assert.equal(await op.run(who('k'), 1, () => 'back'), 'back')
    await once.stop()
  },
)

onEveryStore('hundreds of callers share few commits, and none is lost', async (bench) => {
  let [commits, rows] = [0, 0]
  const { store } = bench.world
  const grouped = flushesOf(store, (requests) => {
    commits += 1
    rows += requests.length
  })
  const once = createLedger({ store, background: false })
  const op = once.operation({ name: 'many', effect: 'repeatable' })
  const values = await Promise.all(Array.from({ length: 500 }, (_, n) => op.run(who(`k${n}`), n, () => n)))
  assert.deepEqual(
    values,
    Array.from({ length: 500 }, (_, n) => n),
  )
  if (grouped) assert.equal(rows, 1_000)
  assert.ok(commits < 200, `${commits} commits`)
  assert.equal((await once.count()).succeeded, 500)
  await once.stop()
})
