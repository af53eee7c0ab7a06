import { Body, Controller, Post } from '@nestjs/common'
import type {
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  APIGatewayProxyResult,
  APIGatewayProxyStructuredResultV2,
  Context,
  SQSBatchResponse,
  SQSEvent,
} from 'aws-lambda'
import type { Ledger } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createProtect, handleSqsBatch } from 'onceonly/lambda'
import type { LeasedRouteContext, TransactionRouteContext } from 'onceonly/nest'
import { Idempotent, Once, OnceonlyModule } from 'onceonly/nest'
import type { SqliteTx } from 'onceonly/sqlite'

interface Order {
  readonly item: string
}

/** The compiler refuses a context that the route does not give. */
@Controller()
export class TypedController {
  @Post()
  @Idempotent({ name: 'a', effect: 'transaction' })
  transaction(@Body() _order: Order, @Once() _once: TransactionRouteContext<SqliteTx>): void {}

  @Post()
  @Idempotent({ name: 'b', effect: 'transaction' })
  leasedInTransaction(@Once() _once: LeasedRouteContext): void {}

  @Post()
  // @ts-expect-error -- an external effect has no `tx`.
  @Idempotent({ name: 'c', effect: 'external' })
  withoutTransaction(@Once() _once: TransactionRouteContext<SqliteTx>): void {}

  @Post()
  // @ts-expect-error -- without a key there is no context.
  @Idempotent({ name: 'd', effect: 'external', key: 'optional' })
  neverNull(@Once() _once: LeasedRouteContext): void {}

  @Post()
  @Idempotent({ name: 'e', effect: 'external', key: 'optional' })
  nullable(@Once() _once: LeasedRouteContext | null, @Body() _order: Order | null): void {}
}

export function modules(ledger: Ledger<SqliteTx>) {
  return [
    OnceonlyModule.forRoot({ ledger, who: ({ headers }) => ({ tenant: 'acme', caller: String(headers['from']) }) }),
    OnceonlyModule.forRoot({
      ledger,
      who: (request: { user: { id: string } }) => ({ tenant: 'a', caller: request.user.id }),
    }),
    // @ts-expect-error -- `who` names tenant and caller.
    OnceonlyModule.forRoot({ ledger, who: () => ({ tenant: 'acme' }) }),
  ]
}

/** Functions with the types of `@types/aws-lambda`, as the runtime calls them. */
export function functions(ledger: Ledger<SqliteTx>) {
  const rest = createProtect({
    ledger,
    who: (event: APIGatewayProxyEvent) => ({ tenant: 'acme', caller: event.requestContext.accountId }),
  })
  const http = createProtect({
    ledger,
    who: (event: APIGatewayProxyEventV2) => ({ tenant: 'acme', caller: event.requestContext.accountId }),
  })
  const either = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'shared' }) })
  const v1: (event: APIGatewayProxyEvent, context: Context) => Promise<APIGatewayProxyResult> = rest(
    { name: 'a', effect: 'transaction' },
    async (event, _context, { tx }): Promise<APIGatewayProxyResult> => {
      await tx.query('select ?', [event.resource])
      return { statusCode: 200, body: '' }
    },
  )
  const v2: (event: APIGatewayProxyEventV2, context: Context) => Promise<APIGatewayProxyStructuredResultV2> = http(
    { name: 'b', effect: 'external' },
    // @ts-expect-error -- an external effect has no `tx`.
    async (event, _context, { tx }) => ({ statusCode: 200, body: event.routeKey + String(tx) }),
  )
  const any: (event: APIGatewayProxyEventV2, context: Context) => Promise<APIGatewayProxyStructuredResultV2> = either(
    { name: 'c', effect: 'external', key: 'optional' },
    async (event, _context, once) => ({ path: event.headers, key: once?.effectKey }),
  )
  const inbox = createInbox({ ledger, consumer: 'shipping', background: false })
  const sqs: (event: SQSEvent, context: Context) => Promise<SQSBatchResponse> = handleSqsBatch(
    inbox,
    async ({ item }: Order, { tx, message }) => void (await tx.query('select ?', [item + message.id])),
  )
  return { v1, v2, any, sqs }
}
