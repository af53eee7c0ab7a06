import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { TestContext } from 'node:test'
import type { Request, Response } from 'express'
import express from 'express'
import { createLedger } from 'onceonly'
import { keepRawBody, createProtect as protectExpress } from 'onceonly/express'
import type { RouteDefinition } from 'onceonly/http'
import { memoryStore } from 'onceonly/memory'
import { createProtect as protectNode } from 'onceonly/node'
import { listen } from '../listen.ts'

/** The response for a created object. */
interface Customer {
  readonly id: string
  readonly object: 'customer'
  readonly email: string | null
}

/** A server with the API of Stripe, built on the profile of that name. */
export interface Shop {
  readonly port: number
  /** Every customer that was really made. */
  readonly customers: readonly Customer[]
  /** How often the handler ran, whatever it answered. */
  readonly runs: number
  /** The key of every request that arrived, as it was sent. */
  readonly keys: readonly (string | undefined)[]
  /** The status of every answer that was sent. */
  readonly answers: readonly number[]
  /** From now on handlers wait, after their effect and before their answer, until the returned function is called. */
  hold(): () => void
}

type WhileRunning = NonNullable<RouteDefinition<unknown>['whileRunning']>

/** Adapters that see a form in two ways: behind a parser, and as raw bytes. */
export const frameworks = ['express', 'node'] as const

interface Reply {
  readonly status: number
  readonly body: unknown
}

const ACCOUNTS: Readonly<Record<string, string>> = { sk_test_acme: 'acct_acme', sk_test_zenith: 'acct_zenith' }

export async function openShop(
  context: TestContext,
  framework: (typeof frameworks)[number],
  whileRunning: WhileRunning = 'conflict',
): Promise<Shop> {
  const customers: Customer[] = []
  const keys: (string | undefined)[] = []
  const answers: number[] = []
  let runs = 0
  let held = Promise.resolve()

  /** The name of a customer decides the outcome. */
  async function create(form: URLSearchParams): Promise<Reply> {
    runs++
    const email = form.get('email')
    if (email === 'declined@example.com') return refusal(402, 'card_error', 'Your card was declined.')
    if (email === 'broken@example.com') return refusal(500, 'api_error', 'Something broke.')
    const customer: Customer = { id: `cus_${customers.length + 1}`, object: 'customer', email }
    customers.push(customer)
    await held
    return { status: 200, body: customer }
  }

  const ledger = createLedger({ store: memoryStore(), background: false })
  context.after(() => ledger.stop())
  const definition = { effect: 'external', whileRunning } as const
  const options = { ledger, profile: 'stripe', who } as const
  const serve = { express: serveExpress, node: serveNode }[framework]()
  const { port, stop } = await listen(
    createServer((request, response) => {
      keys.push(request.headers['idempotency-key']?.toString())
      response.on('finish', () => answers.push(response.statusCode))
      serve(request, response)
    }),
  )
  context.after(stop)
  return {
    port,
    customers,
    keys,
    answers,
    get runs() {
      return runs
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      context.after(() => resolve())
      return resolve
    },
  }

  function serveExpress(): RequestListener {
    const app = express()
    app.use(express.urlencoded({ verify: keepRawBody }))
    const protect = protectExpress(options)
    const handler = async (request: Request, response: Response) => {
      const { status, body } = await create(new URLSearchParams(request.body as Record<string, string>))
      response.status(status).json(body)
    }
    app.post('/v1/customers', protect(definition, handler))
    return app
  }

  function serveNode(): RequestListener {
    const protect = protectNode(options)
    const listener = protect(definition, async (request, response) => {
      const { status, body } = await create(new URLSearchParams(Buffer.from(request.rawBody ?? []).toString()))
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
    return (request, response) => void listener(request, response)
  }
}

function refusal(status: number, type: string, message: string): Reply {
  return { status, body: { error: { type, message } } }
}

/** The account is the identity, not the key: keys are rolled, and a retry may come under the new one. */
function who({ headers }: IncomingMessage) {
  const account = ACCOUNTS[headers.authorization?.replace(/^Bearer /, '') ?? '']
  if (account === undefined) throw new Error('No such account.')
  return { tenant: account, caller: 'shared' }
}
