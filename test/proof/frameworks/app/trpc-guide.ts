import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createTRPCClient, httpBatchLink, TRPCClientError } from '@trpc/client'
import { initTRPC, TRPCError } from '@trpc/server'
import { createHTTPServer } from '@trpc/server/adapters/standalone'
import { createLedger, isOnceError } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'
import { z } from 'zod'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-trpc-'))
const store = sqliteStore(join(folder, 'shop.db'))
const once = createLedger({ store })
await store.sql.query('create table orders (item text not null)')

interface Context {
  readonly user: { readonly id: string; readonly orgId: string }
}

const t = initTRPC.context<Context>().create()

/** A mutation with a key in its input: calls of one batch share their headers, and need keys of their own. */
const idempotent = t.procedure
  .input(z.object({ key: z.string().min(1).max(200) }))
  .use(async ({ ctx, input, next }) => {
    const identity = { tenant: ctx.user.orgId, caller: ctx.user.id, key: input.key }
    const result = await next({ ctx: { identity } })
    if (result.ok || !isOnceError(result.error.cause)) return result
    const { cause, message } = result.error
    throw new TRPCError({ code: cause.retryable ? 'TOO_MANY_REQUESTS' : 'CONFLICT', message, cause })
  })

const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })

export const router = t.router({
  placeOrder: idempotent.input(z.object({ item: z.string().min(1) })).mutation(({ ctx, input }) => {
    const { key: _key, ...order } = input
    return place.run(ctx.identity, order, async ({ tx }) => {
      await tx.query('insert into orders (item) values (?)', [order.item])
      return { placed: order.item }
    })
  }),
})

test('trpc: a mutation with a key runs once', async (context) => {
  const server = createHTTPServer({ router, createContext: () => ({ user: { id: 'ann', orgId: 'acme' } }) })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  context.after(async () => {
    server.closeAllConnections()
    server.close()
    await once.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const url = `http://127.0.0.1:${address.port}`
  const client = createTRPCClient<typeof router>({ links: [httpBatchLink({ url })] })
  const order = { key: 'click-1', item: 'pen' }
  const answers = await Promise.all([
    client.placeOrder.mutate(order),
    client.placeOrder.mutate(order),
    client.placeOrder.mutate({ key: 'click-2', item: 'ink' }),
  ])
  assert.deepEqual(answers, [{ placed: 'pen' }, { placed: 'pen' }, { placed: 'ink' }])
  await assert.rejects(client.placeOrder.mutate({ ...order, item: 'paper' }), (error) => {
    assert.ok(error instanceof TRPCClientError)
    assert.partialDeepStrictEqual(error.data, { code: 'CONFLICT' })
    return true
  })
  await assert.rejects(client.placeOrder.mutate({ key: 'click-3', item: '' }))
  assert.deepEqual(await client.placeOrder.mutate({ key: 'click-3', item: 'cup' }), { placed: 'cup' })
  const rows = await store.sql.query<{ item: string }>('select item from orders order by item')
  assert.deepEqual(
    rows.map(({ item }) => item),
    ['cup', 'ink', 'pen'],
  )
})
