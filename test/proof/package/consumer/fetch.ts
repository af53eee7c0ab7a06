import { createProtect } from 'onceonly/fetch'
import { once } from './ledger.ts'

export const protect = createProtect({
  ledger: once,
  who: (request) => ({ tenant: 'acme', caller: request.headers.get('x-user') ?? 'anonymous' }),
})
/** A route handler as Next.js calls it. */
export const POST = protect(
  { name: 'fetch.order', effect: 'transaction' },
  async (request, { params }: { params: Promise<{ id: string }> }, { tx }) => {
    const { id } = await params
    await tx.query('insert into orders (id, item) values ($1, $2)', [id, await request.text()])
    return Response.json({ id }, { status: 201 })
  },
)
