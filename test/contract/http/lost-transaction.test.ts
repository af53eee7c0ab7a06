import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import { createProtect } from 'onceonly/fetch'
import { postgresStore } from 'onceonly/postgres'
import type { PoolClient } from 'pg'
import { Pool } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'

const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
const skip = postgresUrl === undefined ? 'no PostgreSQL server' : false

test('a handler that commits its transaction itself is not told that it was undone', { skip }, async (t) => {
  const database = await createDatabase(postgresUrl as string)
  const pool = new Pool({ connectionString: database.url })
  const clients: (PoolClient & { readonly processID?: number })[] = []
  pool.on('connect', (client) => void clients.push(client))
  t.after(() => pool.end().then(() => database.drop()))
  await pool.query('CREATE TABLE orders (item text)')
  const ledger = createLedger({ store: postgresStore(pool), background: false })
  t.after(() => ledger.stop())
  const errors: unknown[] = []
  const protect = createProtect({
    ledger,
    who: () => ({ tenant: 'acme', caller: 'ann' }),
    onError: (error) => void errors.push(error),
  })
  const place = protect({ name: 'order.place', effect: 'transaction' }, async (_request, _extra: null, { tx }) => {
    await tx.query("INSERT INTO orders VALUES ('pen')")
    const [row] = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await clients.find(({ processID }) => processID === row?.pid)?.query('COMMIT')
    return Response.json({ placed: true })
  })
  const headers = { 'idempotency-key': 'k' }
  const answer = await place(new Request('http://localhost/orders', { method: 'POST', headers }), null)
  const { type } = (await answer.json()) as { type: string }
  assert.deepEqual([answer.status, type], [409, '/problems/outcome-unknown'])
  assert.ok(errors.some((error) => isOnceError(error, 'transaction_lost')))
  assert.equal((await pool.query('SELECT item FROM orders')).rowCount, 1)
})
