import assert from 'node:assert/strict'
import { type Context, Hono } from 'hono'
import { createLedger } from 'onceonly'
import { idempotent } from 'onceonly/hono'
import { memoryStore } from 'onceonly/memory'

const once = createLedger({ store: memoryStore() })
const protect = idempotent({
  ledger: once,
  who: (context: Context) => ({ tenant: context.req.param('shop') ?? '', caller: 'shared' }),
})

const seats: string[] = []
const app = new Hono()
app.post('/:shop/seats', protect({ name: 'seat.book', effect: 'external', key: 'required' }), async (context) => {
  const { guest } = await context.req.json<{ guest: string }>()
  seats.push(guest)
  return context.json({ seat: seats.length }, 201)
})

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
