import { Body, Controller, Post } from '@nestjs/common'
import type { Ledger } from 'onceonly'
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
