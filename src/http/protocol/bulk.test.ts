import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OnceError } from '../../ledger/core/errors.ts'
import { final, notDone, released } from '../../ledger/core/verdict.ts'
import type { EffectContext } from '../../ledger/effect-context.ts'
import { createLedger } from '../../ledger/ledger.ts'
import type { MemoryTx } from '../../ledger/stores/memory/index.ts'
import { memoryStore } from '../../ledger/stores/memory/index.ts'
import { until } from '../../testing/until.ts'
import type { BulkItem } from './batch.ts'
import { createBulk } from './bulk.ts'

const batch = { tenant: 'acme', caller: 'ann', batch: 'b1' }
const call = { timeoutMs: 1_000 }

function opened(lanes = 1) {
  const store = memoryStore({ testClock: true })
  const ledger = createLedger({ store, background: false })
  const ran: string[] = []
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const bulk = createBulk<string, { resourceId: string }>(ledger, { name: 'pay', effect: 'external', lanes, onError })
  const pay = async ({ itemKey, input }: BulkItem<string>) => {
    ran.push(itemKey)
    return { resourceId: `r-${input}` }
  }
  const end = async () => {
    await ledger.stop()
    await store.stop()
  }
  return { store, ledger, bulk, ran, errors, pay, [Symbol.asyncDispose]: end }
}

const items = (...keys: string[]) => keys.map((itemKey) => ({ itemKey, input: itemKey.toUpperCase() }))
const coded = (code: string, more = {}) => Object.assign(new Error(`it is ${code}`), { code, ...more })

test('every item has an outcome of its own, in the order of the request', async () => {
  await using world = opened()
  const { bulk, ran } = world
  const results = await bulk.run(batch, items('ok', 'bad', 'later', 'lost', 'back', 'busy'), async (item, attempt) => {
    ran.push(item.itemKey)
    assert.match(attempt.effectKey, /^[0-9a-f]{32}$/)
    switch (item.itemKey) {
      case 'bad':
        throw final(coded('CARD_REFUSED', { data: { resourceId: 'r-0', status: 'none' } }))
      case 'later':
        throw notDone(coded('BANK_CLOSED'))
      case 'lost':
        throw new Error('connection reset')
      case 'back':
        throw released(coded('UNKNOWN_ACCOUNT'))
      case 'busy':
        throw released(coded('IN_PROGRESS'))
      default:
        return { resourceId: 'r-1' }
    }
  })
  assert.deepEqual(results, [
    { itemKey: 'ok', status: 'SUCCEEDED', resourceId: 'r-1' },
    {
      itemKey: 'bad',
      status: 'FAILED',
      errorCode: 'CARD_REFUSED',
      retryable: false,
      detail: 'it is CARD_REFUSED',
      resourceId: 'r-0',
    },
    { itemKey: 'later', status: 'FAILED', errorCode: 'BANK_CLOSED', retryable: true, detail: 'it is BANK_CLOSED' },
    { itemKey: 'lost', status: 'UNKNOWN' },
    {
      itemKey: 'back',
      status: 'FAILED',
      errorCode: 'UNKNOWN_ACCOUNT',
      retryable: false,
      detail: 'it is UNKNOWN_ACCOUNT',
    },
    { itemKey: 'busy', status: 'IN_PROGRESS', detail: 'it is IN_PROGRESS' },
  ])
  assert.deepEqual(ran, ['ok', 'bad', 'later', 'lost', 'back', 'busy'])
})

test('a partial retry, in another order and with more items, runs only what is not done', async () => {
  await using world = opened()
  const { bulk, ran, pay } = world
  const first = await bulk.run(batch, items('a', 'b', 'c'), async (item) => {
    if (item.itemKey === 'b') throw released(coded('NOT_YET', { retryable: true }))
    if (item.itemKey === 'c') throw final(coded('NEVER'))
    return pay(item)
  })
  assert.deepEqual(
    first.map(({ status, ...rest }) => [status, rest['retryable']]),
    [
      ['SUCCEEDED', undefined],
      ['FAILED', true],
      ['FAILED', false],
    ],
  )
  ran.length = 0
  const again = await bulk.run(batch, items('d', 'c', 'b', 'a'), pay)
  assert.deepEqual(ran, ['d', 'b'])
  assert.deepEqual(
    again.map(({ itemKey, status }) => `${itemKey} ${status}`),
    ['d SUCCEEDED', 'c FAILED', 'b SUCCEEDED', 'a SUCCEEDED'],
  )
  assert.deepEqual(again[3], first[0])
  assert.deepEqual(again[1], first[2])
})

test('another payload under an item key is refused, another batch is another item', async () => {
  await using world = opened()
  const { bulk, ran, pay } = world
  await bulk.run(batch, [{ itemKey: 'a', input: 'one' }], pay)
  const [reused] = await bulk.run(batch, [{ itemKey: 'a', input: 'two' }], pay)
  assert.equal(reused?.status, 'FAILED')
  assert.equal(reused?.['errorCode'], 'IDEMPOTENCY_KEY_REUSED')
  assert.equal(reused?.['retryable'], false)
  const [other] = await bulk.run({ ...batch, batch: 'b2' }, [{ itemKey: 'a', input: 'two' }], pay)
  assert.deepEqual(other, { itemKey: 'a', status: 'SUCCEEDED', resourceId: 'r-two' })
  assert.deepEqual(ran, ['a', 'a'])
})

test('while one request runs an item, another one gets that in its response, and does the rest', async () => {
  await using world = opened()
  const { bulk, ran, pay } = world
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const running = bulk.run(batch, items('a'), async (item) => {
    begun.resolve()
    await gate.promise
    return pay(item)
  })
  await begun.promise
  const twin = await bulk.run(batch, items('a', 'b'), pay)
  assert.deepEqual(
    twin.map(({ status }) => status),
    ['IN_PROGRESS', 'SUCCEEDED'],
  )
  gate.resolve()
  assert.equal((await running)[0]?.status, 'SUCCEEDED')
  assert.deepEqual(ran, ['b', 'a'])
})

test('a crash in the middle leaves the items that had not begun free, and only the one that had unknown', async () => {
  await using world = opened()
  const { store, bulk, ran, pay } = world
  const begun = Promise.withResolvers<void>()
  // As if the process had died: this request never continues.
  void bulk.run(batch, items('a', 'b', 'c'), async (item) => {
    if (item.itemKey === 'a') return pay(item)
    begun.resolve()
    return new Promise(() => {})
  })
  await begun.promise
  await store.clock.advance(60_000, call)
  const after = await bulk.run(batch, items('a', 'b', 'c'), pay)
  assert.deepEqual(
    after.map(({ status }) => status),
    ['SUCCEEDED', 'UNKNOWN', 'SUCCEEDED'],
  )
  assert.deepEqual(ran, ['a', 'c'])
})

test('all items of a request are reserved at once, so that they share a commit', async () => {
  await using world = opened()
  const { apply } = world.store.claims
  let sent = 0
  const sentBeforeAnswer: number[] = []
  Object.assign(world.store.claims, {
    apply: (async (request, given) => {
      if (request.kind === 'claim') sent += 1
      const applied = await apply(request, given)
      if (request.kind === 'claim') sentBeforeAnswer.push(sent)
      return applied
    }) satisfies typeof apply,
  })
  await world.bulk.run(batch, items(...Array.from({ length: 100 }, (_, at) => `k${at}`)), world.pay)
  assert.deepEqual([sentBeforeAnswer[0], sent], [100, 100])
})

test('lanes bound how many items run at once', async () => {
  await using world = opened(3)
  let now = 0
  let most = 0
  const keys = Array.from({ length: 10 }, (_, at) => `k${at}`)
  const results = await world.bulk.run(batch, items(...keys), async (item) => {
    most = Math.max(most, ++now)
    await until('three items run at once', () => most >= 3)
    // A moment for a fourth, which must not come.
    await new Promise((resolve) => setTimeout(resolve, 5))
    now--
    return world.pay(item)
  })
  assert.equal(most, 3)
  assert.deepEqual(
    results.map(({ itemKey }) => itemKey),
    keys,
  )
})

test('the result of an item is shown again for every retry', async () => {
  await using world = opened()
  let state = 'UNKNOWN'
  const shown = createBulk<string, string>(world.ledger, {
    name: 'shown',
    effect: 'external',
    show: (value) => (state === 'UNKNOWN' ? { status: 'UNKNOWN' } : { status: 'SUCCEEDED', resourceId: value }),
  })
  const send = async (_item: BulkItem<string>, _attempt: EffectContext) => 'm-1'
  assert.deepEqual(await shown.run(batch, items('a'), send), [{ itemKey: 'a', status: 'UNKNOWN' }])
  state = 'SENT'
  assert.deepEqual(await shown.run(batch, items('a'), send), [{ itemKey: 'a', status: 'SUCCEEDED', resourceId: 'm-1' }])
})

test('an item that cannot be shown delays no other, and is shown to the next request', async () => {
  await using world = opened()
  const { ledger, errors, ran } = world
  let away = true
  const show = (resourceId: string) => {
    if (away) throw new Error('the database is away')
    return { status: 'SUCCEEDED', resourceId } as const
  }
  const shown = { show, onError: (error: unknown) => errors.push(error) }
  const leased = createBulk<string, string>(ledger, { name: 'leased', effect: 'external', ...shown })
  const inside = createBulk<string, string, MemoryTx>(ledger, { name: 'inside', effect: 'transaction', ...shown })
  const pay = async ({ itemKey }: BulkItem<string>) => {
    ran.push(itemKey)
    return `r-${itemKey}`
  }
  for (const bulk of [leased, inside]) {
    away = true
    const first = await bulk.run(batch, items('a', 'b'), pay)
    assert.deepEqual(
      first.map(({ status }) => status),
      ['IN_PROGRESS', 'IN_PROGRESS'],
      'it is done, so that it did not fail',
    )
    const replayed = await bulk.run(batch, items('a'), pay)
    assert.equal(replayed[0]?.status, 'IN_PROGRESS')
    away = false
    assert.deepEqual(await bulk.run(batch, items('a', 'b'), pay), [
      { itemKey: 'a', status: 'SUCCEEDED', resourceId: 'r-a' },
      { itemKey: 'b', status: 'SUCCEEDED', resourceId: 'r-b' },
    ])
  }
  assert.deepEqual(ran, ['a', 'b', 'a', 'b'])
  assert.equal(errors.length, 6)
})

test('an outcome that the store did not take is written as soon as it is back', async () => {
  const store = memoryStore()
  let away = false
  const refused = new OnceError('store_unavailable', 'The store is away.', { applied: 'no' })
  const apply: typeof store.claims.apply = (request, given) =>
    away ? Promise.reject(refused) : store.claims.apply(request, given)
  const settled = Promise.withResolvers<void>()
  const ledger = createLedger({
    store: { ...store, claims: { ...store.claims, apply } },
    background: false,
    on: ({ kind }) => kind === 'settled' && settled.resolve(),
  })
  const bulk = createBulk<string, string>(ledger, { name: 'pay', effect: 'external' })
  const pay = async () => {
    away = true
    return 'r-1'
  }
  const done = [{ itemKey: 'a', status: 'SUCCEEDED', resourceId: 'r-1' }]
  assert.deepEqual(await bulk.run(batch, items('a'), pay), done)
  away = false
  await settled.promise
  assert.deepEqual(await bulk.run(batch, items('a'), () => assert.fail('it ran again')), done)
  await ledger.stop()
  await store.stop()
})

test('an item is postponed for as long as its effect says, and only an error of the batch itself proves that nothing happened', async () => {
  await using world = opened()
  const { ledger, errors } = world
  const bulk = createBulk<string, string>(ledger, {
    name: 'judged',
    effect: 'external',
    classify: (error) => ((error as Error).message === 'closed' ? 'not_done' : 'ambiguous'),
    onError: (error) => errors.push(error),
  })
  const run = () =>
    bulk.run(batch, items('later', 'closed', 'lost'), async ({ itemKey }) => {
      throw itemKey === 'later' ? notDone(coded('BUSY'), { retryAfterMs: 60_000 }) : new Error(itemKey)
    })
  const first = await run()
  assert.deepEqual(
    first.map(({ status, ...rest }) => [status, rest['retryable'], rest['retryAfterMs']]),
    [
      ['FAILED', true, 60_000],
      ['FAILED', true, undefined],
      ['UNKNOWN', undefined, undefined],
    ],
  )
  const [later, closed] = await run()
  assert.equal(later?.['errorCode'], 'RETRY_LATER')
  assert.ok(Number(later?.['retryAfterMs']) > 50_000)
  assert.equal(closed?.['errorCode'], 'FAILED', 'it was tried again')
})

test('internal errors are not shown to the caller', async () => {
  await using world = opened()
  const { ledger, errors } = world
  const onError = (error: unknown) => errors.push(error)
  const secret = () => coded('23505', { message: 'duplicate key value in table salaries', data: { salary: 7 } })
  const inside = createBulk<string, string, MemoryTx>(ledger, { name: 'inside', effect: 'transaction', onError })
  const repeated = createBulk<string, string>(ledger, { name: 'repeated', effect: 'repeatable', onError })
  const failure = { itemKey: 'a', status: 'FAILED', errorCode: 'FAILED', retryable: true }
  assert.deepEqual(await inside.run(batch, items('a'), () => Promise.reject(secret())), [failure])
  assert.deepEqual(await repeated.run(batch, items('a'), () => Promise.reject(secret())), [failure])
  assert.deepEqual(
    errors.map((error) => (error as { code?: unknown }).code),
    ['23505', '23505'],
  )
  const meant = await inside.run(batch, items('b'), () => Promise.reject(notDone(coded('LATER'))))
  assert.deepEqual(meant, [
    { itemKey: 'b', status: 'FAILED', errorCode: 'LATER', retryable: true, detail: 'it is LATER' },
  ])
})

test('in transactions: what an item wrote commits with its outcome, or not at all', async () => {
  await using world = opened()
  const { store, ledger, errors } = world
  const bulk = createBulk<string, { resourceId: string }, MemoryTx>(ledger, {
    name: 'open',
    effect: 'transaction',
    onError: (error) => errors.push(error),
  })
  const run = () =>
    bulk.run(batch, items('a', 'b', 'c'), async ({ itemKey }, { tx }) => {
      tx.set(itemKey, Number(tx.get(itemKey) ?? 0) + 1)
      if (itemKey === 'b') throw final(coded('NOT_ALLOWED'))
      if (itemKey === 'c' && errors.length === 0) throw new Error('a deadlock of sorts')
      return { resourceId: itemKey }
    })
  const first = await run()
  assert.deepEqual(
    first.map(({ status, ...rest }) => [status, rest['errorCode'], rest['retryable']]),
    [
      ['SUCCEEDED', undefined, undefined],
      ['FAILED', 'NOT_ALLOWED', false],
      ['FAILED', 'FAILED', true],
    ],
  )
  const again = await run()
  assert.deepEqual(again.slice(0, 2), first.slice(0, 2))
  assert.equal(again[2]?.status, 'SUCCEEDED')
  const written = await store.transactions.run(async ({ tx }) => ['a', 'b', 'c'].map((key) => tx.get(key)), {
    ...call,
    lockMs: 1_000,
    refuseTwinOf: null,
  })
  assert.deepEqual(written, [1, undefined, 1])
})

test('a duplicate item key is refused before anything is claimed', async () => {
  await using world = opened()
  await assert.rejects(world.bulk.run(batch, items('a', 'a'), world.pay), { code: 'bad_input' })
  assert.deepEqual(world.ran, [])
})

test('a listener for errors that throws strands no item', async () => {
  await using world = opened()
  const { ledger, ran } = world
  const onError = () => {
    throw new Error('the log is full')
  }
  const bulk = createBulk<string, { resourceId: string }>(ledger, { name: 'send', effect: 'external', onError })
  const send = async ({ itemKey, input }: BulkItem<string>) => {
    if (itemKey === 'lost') throw new Error('no answer')
    ran.push(itemKey)
    return { resourceId: input }
  }
  const results = await bulk.run(batch, items('lost', 'next', 'last'), send)
  assert.deepEqual(
    results.map(({ status }) => status),
    ['UNKNOWN', 'SUCCEEDED', 'SUCCEEDED'],
  )
  assert.deepEqual(ran, ['next', 'last'])
})
