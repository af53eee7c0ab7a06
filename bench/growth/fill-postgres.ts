import { createPool, type PostgresPlace } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { createTables } from '../postgres/tables.ts'
import { FILL_ROWS, fillingOf } from './filled.ts'

/** Fills the tables that our store has made, into the indexes as they grow by themselves. */
const task = readTask<PostgresPlace & { readonly records: number }>()
const pool = createPool(task)
await createTables(pool)
const client = await pool.connect()
await client.query('SET synchronous_commit = off')
const { records, operation, policy, claimedAt, expiresAt, expiredEvery, expiredAt, outcome } = fillingOf(task.records)
for (let from = 1; from <= records; from += FILL_ROWS) {
  await client.query(
    `INSERT INTO onceonly_records (id, fence, incarnation, state, claimed_at, settled_at, expires_at, gone_at, attempts,
       kept, claim_id, fingerprint, policy, tenant, caller, operation, key, outcome)
     SELECT gen_random_uuid(), fence, fence, 2, $3::bigint, $3::bigint + 20, ends, ends, 1, 0, md5(fence::text),
       'v1:1:' || left(md5(fence::text) || md5((-fence)::text), 43), $4, 'acme', 'checkout', $5, 'old-' || i, $6
     FROM (SELECT i, nextval('onceonly_fences') AS fence, CASE WHEN i % $7::int = 0 THEN $8::bigint ELSE $9::bigint END AS ends
       FROM generate_series($1::int, $2::int) AS i) AS n`,
    [
      from,
      Math.min(records, from + FILL_ROWS - 1),
      claimedAt,
      policy,
      operation,
      outcome,
      expiredEvery,
      expiredAt,
      expiresAt,
    ],
  )
}
// As the server does by itself some time after so many inserts; the rounds shall not meet it in the middle of that.
await client.query('VACUUM (ANALYZE) onceonly_records')
await client.query('CHECKPOINT')
const { rows } = await client.query<{ records: number }>('SELECT count(*)::int AS records FROM onceonly_records')
mustEqual('records', rows[0]?.records, records)
client.release()
await pool.end()
answer({ records })
