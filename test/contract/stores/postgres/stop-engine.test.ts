import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineRun } from 'onceonly/run'
import { Pool } from 'pg'
import { until } from '../../../../src/testing/until.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import { databaseUrl, freshSchema, testPostgres } from '../../../support/stores/postgres/store.ts'

testPostgres('an engine that was stopped keeps no client of the pool', async () => {
  const pool = new Pool({ connectionString: await databaseUrl(), max: 10 })
  pool.on('error', () => undefined)
  const run = defineRun('charge', (context) => context.step('charge', () => 'charged'))
  const engine = await createEngine({
    ledger: quietLedger(postgresStore(pool, { schema: freshSchema() })),
    runs: [run],
  })
  await (await engine.start(run, { runId: 'r1', input: null })).result()
  await engine.stop()
  await until('all clients are back', () => pool.totalCount === pool.idleCount)
  await pool.end()
})
