import assert from 'node:assert/strict'
import type { Request } from '../../../../src/ledger/core/request.ts'
import type { Applied } from '../../../../src/ledger/store/port.ts'
import type { PostgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { until } from '../../../../src/testing/until.ts'
import {
  byId,
  CALL,
  claimAll,
  claimIn,
  claimOf,
  DONE,
  flush,
  freshPool,
  freshSchema,
  kindOf,
  leaseOf,
  openStore,
  settleOf,
  sleep,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

const keys = (count: number, prefix = 'k') => Array.from({ length: count }, (_, index) => `${prefix}${index}`)

function kindsOf(answers: readonly Applied[]): string[] {
  return answers.map(kindOf)
}

testPostgres(
  'claims and settles of a batch are decided together, alone, and in the order of the requests',
  async (t) => {
    const store = await openStore(t)
    for (const count of [1, 2, 50]) {
      const grants = await claimAll(store, keys(count, `n${count}-`))
      const twins = byId(keys(count, `n${count}-`).map((key) => claimOf(key)))
      assert.deepEqual(new Set(kindsOf(await flush(store, twins, CALL))), new Set(['in_progress']))
      const settles = grants.map((grant) => settleOf(grant))
      const settled = await flush(store, settles, CALL)
      assert.deepEqual(new Set(kindsOf(settled)), new Set(['applied']))
      assert.deepEqual(
        settled.map((answer) => 'record' in answer && answer.record?.id),
        grants.map(({ id }) => id),
      )
      // Settling twice with the same claim is harmless and answers the same.
      assert.deepEqual(kindsOf(await flush(store, settles, CALL)), kindsOf(settled))
      const replayed = await flush(store, twins, CALL)
      assert.deepEqual(new Set(kindsOf(replayed)), new Set(['replay_success']))
    }
    assert.deepEqual(await flush(store, [], CALL), [])
  },
)

testPostgres('a row that cannot be stored fails alone, and the others of its batch commit', async (t) => {
  const store = await openStore(t)
  const grants = await claimAll(store, keys(9))
  const bad = ['nul \0 inside', '"\ud800"', undefined as unknown as string]
  const settles = grants.map((grant, index) =>
    settleOf(
      grant,
      index % 3 === 1 ? { state: 'succeeded', outcome: { kept: 'response', data: bad[index % 2] ?? 'x\0' } } : DONE,
    ),
  )
  const claims = [
    claimOf('fresh'),
    claimOf('nul', { claimId: 'nul \0' }),
    claimOf('half', { claimId: '\ud800' }),
    claimOf('none', { claimId: undefined as unknown as string }),
    claimOf('endless', { leaseMs: Number.NaN }),
    claimOf('other fresh'),
    claimOf('no id', { id: 'ffffffffffffffffffffffffffffffzz' }),
  ]
  const refused = new Set(['nul', 'half', 'none', 'endless', 'no id'])
  const requests = byId([...settles, ...claims])
  const answers = await flush(store, requests, CALL)
  for (const [index, request] of requests.entries()) {
    const expected =
      request.kind === 'claim'
        ? refused.has(request.identity.key)
          ? 'row_refused'
          : 'first_attempt'
        : request.to === DONE
          ? 'applied'
          : 'row_refused'
    assert.equal(kindOf(answers[index]), expected, JSON.stringify(request))
  }
  const { records } = await store.claims.read(
    grants.map(({ id }) => id),
    CALL,
  )
  assert.equal(records.filter((record) => record?.state === 'succeeded').length, 6)
  assert.equal(records.filter((record) => record?.state === 'in_progress').length, 3)
})

testPostgres('a poison row of the slow path fails alone, too', async (t) => {
  const store = await openStore(t)
  const releases = byId(
    ['a', 'b', 'nul \0', 'c'].map((key) => {
      const { id, identity, claimId, policy, fingerprints } = claimOf(key)
      return { kind: 'release', id, identity, claimId, policy, fingerprint: fingerprints[0] } as const
    }),
  )
  assert.deepEqual(
    kindsOf(await flush(store, releases, CALL)),
    releases.map(({ identity }) => (identity.key.includes('\0') ? 'row_refused' : 'applied')),
  )
})

testPostgres('two stores that fight for the same identities never deadlock, and each is granted once', async (t) => {
  const schema = freshSchema()
  const stores = [await openStore(t, { schema }), await openStore(t, { schema })]
  for (let round = 0; round < 15; round++) {
    const names = keys(40, `r${round}-`)
    const grants = await Promise.all(
      stores.flatMap((store) =>
        // The arrival order differs; what the store is given is sorted, as the port asks.
        [names, names.toReversed()].map(async (order) => {
          const answers = await flush(store, byId(order.map((key) => claimOf(key))), CALL)
          assert.deepEqual(
            kindsOf(answers).filter((kind) => kind !== 'in_progress' && kind !== 'first_attempt'),
            [],
          )
          return answers.filter((answer) => kindOf(answer) === 'first_attempt').map(leaseOf)
        }),
      ),
    )
    const all = byId(grants.flat())
    assert.equal(all.length, names.length)
    assert.equal(new Set(all.map(({ fence }) => fence)).size, names.length)
    // Slow path against fast path, over the same rows: some release what others settle.
    const settles = all.map((grant) =>
      settleOf(grant, { state: 'failed_retryable', outcome: { kept: 'outcome', data: null }, retryAfterMs: 0 }),
    )
    const forgets = all.map(({ id }) => ({ kind: 'forget', id, by: 'test', ifFence: null, onlyRunning: true }) as const)
    const ended = await Promise.all([
      flush(stores[0] as PostgresStore, settles, CALL),
      flush(stores[1] as PostgresStore, forgets, CALL),
      flush(stores[1] as PostgresStore, settles, CALL),
    ])
    assert.deepEqual(
      ended.flat().filter((answer) => answer === undefined || 'error' in answer),
      [],
    )
  }
})

testPostgres('a row locked by another session does not stop the others', async (t) => {
  const schema = freshSchema()
  let statements = 0
  const counted = await freshPool(t)
  counted.on('connect', (client) => {
    const send = client.query.bind(client) as (...given: unknown[]) => unknown
    client.query = ((...given: unknown[]) => {
      statements += 1
      return send(...given)
    }) as typeof client.query
  })
  const store = await openStore(t, { schema }, counted)
  const grants = await claimAll(store, keys(30))
  const pool = await freshPool(t)
  const held = grants[7]
  assert.ok(held !== undefined)
  const locker = await pool.connect()
  try {
    await locker.query('BEGIN')
    await locker.query(`SELECT 1 FROM "${schema}".onceonly_records WHERE id = $1 FOR UPDATE`, [held.id])
    statements = 0
    const batches: Request[][] = [
      grants.map(
        (grant) =>
          ({ kind: 'renew', id: grant.id, claimId: grant.claimId, fence: grant.fence, leaseMs: 9_000 }) as const,
      ),
      grants.map((grant) => settleOf(grant)),
    ]
    for (const requests of batches) {
      const answers = await flush(store, requests, CALL)
      for (const [index, grant] of grants.entries()) {
        assert.equal(kindOf(answers[index]), grant === held ? 'store_busy' : 'applied')
      }
    }
    const forgets = grants.map(
      ({ id }) => ({ kind: 'forget', id, by: 'test', ifFence: null, onlyRunning: false }) as const,
    )
    const forgotten = await flush(store, forgets, CALL)
    for (const [index, grant] of grants.entries()) {
      assert.equal(kindOf(forgotten[index]), grant === held ? 'store_busy' : 'done')
    }
    // A few for each of the three; each row for itself would be ninety, and would wait as often.
    assert.ok(statements > 0 && statements < grants.length, `${statements} statements`)
    // A replay, or any other decision that changes nothing, waits for no lock.
    assert.equal(kindOf(await store.claims.apply(claimOf(held.identity.key), CALL)), 'in_progress')
  } finally {
    await locker.query('ROLLBACK')
    locker.release()
  }
  assert.equal(kindOf(await store.claims.apply(settleOf(held), CALL)), 'applied')
})

testPostgres('a claim that an open transaction made does not stop the other claims of a batch', async (t) => {
  const schema = freshSchema()
  const [store, other] = [await openStore(t, { schema }), await openStore(t, { schema })]
  const claims = byId(keys(16).map((key) => claimOf(key)))
  const twin = claims[5]
  assert.ok(twin !== undefined)
  await other.transactions.run(
    async (session) => {
      await session.apply({ ...twin, claimId: 'the other one' })
      const answers = await flush(store, claims, CALL)
      assert.deepEqual(
        kindsOf(answers),
        claims.map((claim) => (claim === twin ? 'store_busy' : 'first_attempt')),
      )
    },
    { timeoutMs: 20_000, lockMs: 1_000, refuseTwinOf: null },
  )
})

testPostgres('numbers are read as numbers, whatever parsers the user gave to the driver', async (t) => {
  const pool = await freshPool(t, { types: { getTypeParser: () => (text: string) => `parsed ${text}` } } as never)
  const store = await openStore(t, {}, pool)
  const grant = await claimIn(store, 'a')
  assert.ok(Number.isSafeInteger(grant.fence) && Number.isSafeInteger(grant.claimedAt))
  assert.equal(kindOf(await store.claims.apply(settleOf(grant), CALL)), 'applied')
  assert.ok(Number.isSafeInteger(await store.clock.now(CALL)))
})

testPostgres('fractions of a millisecond do not spoil a row', async (t) => {
  const store = await openStore(t)
  const grant = await claimIn(store, 'a', { leaseMs: 1_000.25 })
  const retry = { state: 'failed_retryable', outcome: { kept: 'outcome', data: null }, retryAfterMs: 0.5 } as const
  assert.equal(kindOf(await store.claims.apply(settleOf(grant, retry), CALL)), 'applied')
  await sleep(10)
  assert.equal(kindOf(await store.claims.apply(claimOf('a', { leaseMs: 1_000.25 }), CALL)), 'reclaimed')
})

testPostgres('settling and renewing touch no index', async (t) => {
  const schema = freshSchema()
  const store = await openStore(t, { schema })
  const data = JSON.stringify('x'.repeat(200))
  for (let batch = 0; batch < 10; batch++) {
    const grants = await claimAll(store, keys(100, `b${batch}-`))
    const renews = grants.map(
      ({ id, claimId, fence }) => ({ kind: 'renew', id, claimId, fence, leaseMs: 30_000 }) as const,
    )
    const to = { state: 'succeeded', outcome: { kept: 'response', data } } as const
    const settles = grants.map((grant) => settleOf(grant, to))
    // Each page has room for a second version of its rows; a third one needs the server to clean up in between.
    if (batch % 2 === 0) await flush(store, renews, CALL)
    else await flush(store, settles, CALL)
  }
  // A session hands its counts in when it ends.
  await store.stop()
  const pool = await freshPool(t)
  const counted = await until(
    'a thousand updates are counted',
    async (): Promise<{ updates: number; hot: number }> => {
      const { rows } = await pool.query(
        `SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables
         WHERE relid = to_regclass($1)`,
        [`${schema}.onceonly_records`],
      )
      return rows[0]
    },
    ({ updates }) => updates >= 1_000,
  )
  assert.equal(counted.updates, 1_000)
  assert.ok(counted.hot >= 0.9 * counted.updates, `${counted.hot} of ${counted.updates} updates were HOT`)
})
