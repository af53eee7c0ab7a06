import assert from 'node:assert/strict'
import type { MariadbStore } from 'onceonly/mariadb'
import { limits } from '../../../../src/ledger/core/limits.ts'
import type { Policy } from '../../../../src/ledger/core/record.ts'
import type { Grant } from '../../../../src/ledger/core/request.ts'
import { claimOf, POLICY, settleOf } from '../../../../src/ledger/store/test-requests.ts'
import type { Sent } from '../../../support/stores/mariadb/stage.ts'
import { poolWith, testMariadb } from '../../../support/stores/mariadb/stage.ts'

const CALL = { timeoutMs: 10_000, lockMs: 1_000, refuseTwinOf: null }
const LONG_AFTER_MS = 24 * 3_600_000
const CALLER = { tenant: 'acme', operation: 'order.create' }
const REFUSED_LONG = { ...POLICY, refuseMs: 10 * LONG_AFTER_MS }

interface Count {
  readonly bucket_at: bigint
  readonly who: Uint8Array
}

/** A plan that reads rows of no interest, and in a statement that locks also waits for them. */
const WHOLE_TABLE = ['ALL', 'index']

async function claimed(store: MariadbStore, key: string, policy: Policy = POLICY): Promise<Grant> {
  const { decision } = await store.claims.apply(claimOf(key, { policy }), CALL)
  assert.ok('lease' in decision)
  return decision.lease
}

async function settled(store: MariadbStore, key: string, policy?: Policy): Promise<void> {
  await store.claims.apply(settleOf(await claimed(store, key, policy)), CALL)
}

/** Copies of one record, under other ids. */
function copiesOf(columns: readonly string[], count: number): string {
  const same = columns.filter((name) => name !== 'id' && name !== 'fence').map((name) => `\`${name}\``)
  return `INSERT INTO onceonly_records (id, fence, ${same.join(', ')})
    SELECT UNHEX(MD5(s.seq)), s.seq, ${same.map((name) => `r.${name}`).join(', ')}
    FROM seq_1_to_${count} AS s, (SELECT * FROM onceonly_records ORDER BY fence LIMIT 1) AS r`
}

for (const rows of [0, 3_000]) {
  testMariadb(`a list of records is found by its keys, among ${rows} others`, async ({ database, open }) => {
    const pool = database.pool()
    const sent: Sent[] = []
    const store = open(
      poolWith(pool, (statement, pass) => {
        if (statement.sql.includes('JSON_TABLE') && /onceonly_records/.test(statement.sql)) sent.push(statement)
        return pass()
      }),
    )
    await settled(store, 'a')
    await settled(store, 'kept', REFUSED_LONG)
    const columns = (await pool.query('SHOW COLUMNS FROM onceonly_records')) as { readonly Field: string }[]
    const names = columns.map(({ Field }) => Field)
    if (rows > 0) await pool.query(copiesOf(names, rows))
    await pool.query('ANALYZE TABLE onceonly_records')
    await store.claims.apply(claimOf('b'), CALL)
    await store.queries.lapsed(0, 10, CALL)
    const { id } = claimOf('a')
    const record = { id, replays: 1, conflicts: 0, inProgress: 0, lastAgoMs: 0 }
    await store.upkeep.tally({ records: [record], callers: [] }, CALL)
    await store.clock.advance(LONG_AFTER_MS, CALL)
    await store.upkeep.sweep(null, 10, CALL)
    const kinds = new Set(sent.map(({ sql }) => /\b(SELECT|UPDATE|DELETE)\b/.exec(sql)?.[0]))
    assert.deepEqual(kinds, new Set(['SELECT', 'UPDATE', 'DELETE']))
    for (const { sql, values } of sent) {
      const text = sql.replace(/^SET STATEMENT .*? FOR /, '')
      const plan = (await pool.query(`EXPLAIN ${text}`, values)) as { readonly table: string; readonly type: string }[]
      const bad = plan.filter(({ table, type }) => table === 'r' && WHOLE_TABLE.includes(type))
      assert.deepEqual(bad, [], text)
      assert.ok(
        plan.some(({ table }) => table === 'r'),
        text,
      )
    }
  })
}

testMariadb('a transaction on one key makes no other key wait', async ({ open }) => {
  const store = open()
  const leases = new Map<string, Grant>()
  for (const key of ['a', 'b']) leases.set(key, await claimed(store, key))
  const locked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const held = store.transactions.run(async ({ apply }) => {
    await apply(claimOf('held'))
    locked.resolve()
    await gate.promise
  }, CALL)
  try {
    await Promise.race([locked.promise, held])
    await store.claims.apply(settleOf(leases.get('a') as Grant), CALL)
    await store.transactions.run(({ apply }) => apply(settleOf(leases.get('b') as Grant)), CALL)
    await store.transactions.run(({ apply }) => apply(claimOf('fresh')), CALL)
  } finally {
    gate.resolve()
  }
  await held
  const { succeeded, in_progress: inProgress } = await store.queries.count({}, CALL)
  assert.deepEqual({ succeeded, inProgress }, { succeeded: 2, inProgress: 2 })
})

testMariadb('the sweep removes old counts beside new ones that a transaction holds', async ({ database, open }) => {
  const store = open()
  const countOf = (caller: string) => ({ ...CALLER, caller, claims: 1, replays: 0, conflicts: 0, inProgress: 0 })
  await store.upkeep.tally({ records: [], callers: ['a', 'b'].map(countOf) }, CALL)
  await store.clock.advance(2 * limits.tallyKeepMs, CALL)
  await store.upkeep.tally({ records: [], callers: ['new'].map(countOf) }, CALL)
  const pool = database.pool()
  const [newest] = (await pool.query('SELECT bucket_at, who FROM onceonly_tallies WHERE caller = ?', [
    'new',
  ])) as Count[]
  const holder = await pool.getConnection()
  try {
    await holder.query({ sql: 'START TRANSACTION' })
    const hold = 'SELECT caller FROM onceonly_tallies WHERE bucket_at = ? AND who = ? FOR UPDATE'
    const held = await holder.query({ sql: hold }, [newest?.bucket_at, newest?.who])
    assert.deepEqual([...(held as unknown[])], [{ caller: 'new' }])
    await store.upkeep.sweep(null, 10, CALL)
  } finally {
    await holder.query({ sql: 'ROLLBACK' })
    await holder.release()
  }
  assert.deepEqual(await pool.query('SELECT caller FROM onceonly_tallies'), [{ caller: 'new' }])
})

testMariadb('the sweep passes over a record that a transaction holds', async ({ database, open }) => {
  const store = open()
  for (const key of ['a', 'b', 'c', 'd']) await settled(store, key)
  for (const key of ['e', 'f']) await settled(store, key, REFUSED_LONG)
  await store.clock.advance(LONG_AFTER_MS, CALL)
  const pool = database.pool()
  const holder = await pool.getConnection()
  try {
    await holder.query({ sql: 'START TRANSACTION' })
    const hold = 'SELECT fence FROM onceonly_records WHERE id = UNHEX(?) FOR UPDATE'
    for (const key of ['b', 'e']) await holder.query({ sql: hold }, [claimOf(key).id])
    assert.deepEqual(await store.upkeep.sweep(null, 10, CALL), { cursor: null, looked: 6, removed: 3 })
  } finally {
    await holder.query({ sql: 'ROLLBACK' })
    await holder.release()
  }
  const left = 'SELECT `key`, outcome IS NULL AS emptied FROM onceonly_records ORDER BY `key`'
  assert.deepEqual(await pool.query(left), [
    { key: 'b', emptied: 0 },
    { key: 'e', emptied: 0 },
    { key: 'f', emptied: 1 },
  ])
})
