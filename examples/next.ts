import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger, isOnceError } from 'onceonly'
import { createProtect } from 'onceonly/fetch'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'shop.db'))

function openLedger() {
  return createLedger({ store, redeclare: process.env['NODE_ENV'] === 'development' })
}

const once: ReturnType<typeof openLedger> = Reflect.get(globalThis, 'once') ?? openLedger()
Reflect.set(globalThis, 'once', once)

await store.sql.query('create table orders (shop text not null, item text not null)')

const currentUser = async () => ({ id: 'ann', orgId: 'acme' })

const protect = createProtect({
  ledger: once,
  who: async () => {
    const user = await currentUser()
    return { tenant: user.orgId, caller: user.id }
  },
})

type Extra = { params: Promise<{ shop: string }> }

export const POST = protect({ name: 'order.place', effect: 'transaction' }, async (request, extra: Extra, { tx }) => {
  const { shop } = await extra.params
  const { item }: { item: string } = JSON.parse(await request.text())
  await tx.query('insert into orders (shop, item) values (?, ?)', [shop, item])
  return Response.json({ shop, item }, { status: 201 })
})

const place = once.operation<{ item: string }>({ name: 'order.place-by-form', effect: 'transaction' })

type State = { placed: string } | { problem: string } | null

export async function placeOrder(_before: State, form: FormData): Promise<State> {
  const user = await currentUser()
  const item = String(form.get('item') ?? '')
  // Validate before you claim: a refused form keeps its key.
  if (item === '') return { problem: 'Name an item.' }
  try {
    const identity = { tenant: user.orgId, caller: user.id, key: String(form.get('key') ?? '') }
    return await place.run(identity, { item }, async ({ tx }) => {
      await tx.query('insert into orders (shop, item) values (?, ?)', ['web', item])
      return { placed: item }
    })
  } catch (error) {
    // Still running, or used for another order; the message says what to do.
    if (isOnceError(error)) return { problem: error.message }
    throw error
  }
}

const ask = () =>
  POST(
    new Request('https://shop.example/api/shops/7/orders', {
      method: 'POST',
      headers: { 'idempotency-key': 'click-1', 'content-type': 'application/json' },
      body: '{"item":"pen"}',
    }),
    { params: Promise.resolve({ shop: '7' }) },
  )
assert.equal((await ask()).status, 201)
assert.equal((await ask()).headers.get('idempotent-replayed'), 'true')

const form = new FormData()
form.set('key', 'render-1')
form.set('item', 'ink')
assert.deepEqual(await placeOrder(null, form), { placed: 'ink' })
assert.deepEqual(await placeOrder(null, form), { placed: 'ink' })
form.set('item', 'paper')
assert.match(JSON.stringify(await placeOrder(null, form)), /problem/)
const rows = await store.sql.query<{ item: string }>('select item from orders')
assert.deepEqual(
  rows.map(({ item }) => item),
  ['pen', 'ink'],
)

console.log('a route and a form, each sent twice: two orders')
await once.stop()
rmSync(folder, { recursive: true, force: true })
