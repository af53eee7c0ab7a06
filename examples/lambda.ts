import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createProtect, handleSqsBatch } from 'onceonly/lambda'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'

const pool = new Pool({ connectionString: process.env['DATABASE_URL'], max: 1 })
const once = createLedger({ store: postgresStore(pool), background: false })
await pool.query('create table orders (item text not null)')
await pool.query('create table parcels (id text not null)')

const protect = createProtect({
  ledger: once,
  // Your authorizer's claims, in place of a header.
  who: (event) => ({ tenant: 'acme', caller: event.headers?.['x-user'] ?? 'anonymous' }),
})

// API Gateway (REST and HTTP APIs) and function URLs.
export const handler = protect({ name: 'order.place', effect: 'transaction' }, async (event, _context, { tx }) => {
  const { item }: { item: string } = JSON.parse(event.body ?? '{}')
  await tx.query('insert into orders (item) values (?)', [item])
  return { statusCode: 201, body: JSON.stringify({ item }) }
})

const inbox = createInbox({ ledger: once, consumer: 'shipping', background: false })

// The event source mapping needs FunctionResponseTypes: ['ReportBatchItemFailures'].
export const ship = handleSqsBatch(inbox, async (order: { id: string }, { tx }) => {
  await tx.query('insert into parcels (id) values (?)', [order.id])
})

const context = { awsRequestId: '8476a536', getRemainingTimeInMillis: () => 3_000 }
const event = {
  version: '2.0',
  rawPath: '/orders',
  rawQueryString: '',
  headers: { 'idempotency-key': 'click-1', 'content-type': 'application/json' },
  requestContext: { http: { method: 'POST' } },
  body: '{"item":"pen"}',
  isBase64Encoded: false,
}
assert.equal((await handler(event, context)).statusCode, 201)
assert.equal((await handler(event, context)).headers['idempotent-replayed'], 'true')
assert.equal((await pool.query('select item from orders')).rows.length, 1)

const record = (messageId: string, received: string) => ({
  messageId,
  body: '{"id":"A1"}',
  attributes: { ApproximateReceiveCount: received },
  messageAttributes: {},
  eventSourceARN: 'arn:aws:sqs:us-east-2:123456789012:orders',
})
assert.deepEqual(await ship({ Records: [record('m1', '1')] }, context), { batchItemFailures: [] })
assert.deepEqual(await ship({ Records: [record('m1', '2')] }, context), { batchItemFailures: [] })
assert.equal((await pool.query('select id from parcels')).rows.length, 1)

console.log('a function called twice, a message delivered twice: one order, one parcel')
await inbox.stop()
await once.stop()
await pool.end()
