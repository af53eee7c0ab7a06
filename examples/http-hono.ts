import assert from 'node:assert/strict'
import { Hono } from 'hono'
import { validator } from 'hono/validator'
import { createLedger } from 'onceonly'
import { createProtect } from 'onceonly/hono'
import { memoryStore } from 'onceonly/memory'

const once = createLedger({ store: memoryStore() })
const protect = createProtect({
  ledger: once,
  who: (c) => ({ tenant: c.req.param('shop') ?? '', caller: 'shared' }),
})

const seats: string[] = []
const app = new Hono()
// A validator inside of `protect` gives its types to the handler, and runs before anything is claimed.
const booking = validator('json', ({ guest }: { guest?: unknown }, c) =>
  typeof guest === 'string' ? { guest } : c.text('`guest` is missing', 400),
)
app.post(
  '/:shop/seats',
  protect({ name: 'seat.book', effect: 'external' }, booking, (c) => {
    seats.push(c.req.valid('json').guest)
    return c.json({ seat: seats.length }, 201)
  }),
)

// Hono runs anywhere, so this needs no port; `app.fetch` is what a server would call.
const ask = (key?: string) =>
  app.request('/opera/seats', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: '{"guest":"Ann"}',
  })

const first = await ask('booking-1')
const retry = await ask('booking-1')
assert.deepEqual(await retry.json(), await first.json())
assert.equal(retry.headers.get('idempotent-replayed'), 'true')
// Without a key a retry could not be distinguished from a second booking, so it is refused before anything happens.
assert.equal((await ask()).status, 400)
assert.deepEqual(seats, ['Ann'])

console.log('three requests, one seat')
await once.stop()
