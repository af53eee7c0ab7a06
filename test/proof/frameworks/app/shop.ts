import type {
  ArgumentMetadata,
  ArgumentsHost,
  CallHandler,
  CanActivate,
  ExceptionFilter,
  ExecutionContext,
  NestInterceptor,
  PipeTransform,
} from '@nestjs/common'
import {
  BadRequestException,
  Body,
  Catch,
  ConflictException,
  Controller,
  Get,
  Header,
  HttpCode,
  Inject,
  Module,
  Post,
  Redirect,
  Req,
  RequestTimeoutException,
  Res,
  Scope,
  StreamableFile,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common'
import { IsInt, IsString } from 'class-validator'
import type { Ledger } from 'onceonly'
import { MINUTE } from 'onceonly'
import type { LeasedRouteContext, TransactionRouteContext } from 'onceonly/nest'
import { Idempotent, Once, OnceonlyModule, ShowOperation } from 'onceonly/nest'
import type { SqliteTx } from 'onceonly/sqlite'
import { map, of, throwError, timeout } from 'rxjs'

export class Order {
  @IsString()
  readonly item!: string

  @IsInt()
  readonly count!: number
}

/** What the tests look at: how often each method ran, and what interceptors saw. */
export class Journal {
  readonly ran: string[] = []
  readonly seen: unknown[] = []
  readonly open = Promise.withResolvers<void>()
}

class SignedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<{ headers: Record<string, unknown> }>().headers['x-user'] !== undefined
  }
}

class Envelope implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((data: unknown) => ({ data })))
  }
}

class Impatient implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(timeout({ each: 50, with: () => throwError(() => new RequestTimeoutException()) }))
  }
}

/** As Nest's guide writes it: it looks at every argument that pipes run on. */
class OnlyOrders implements PipeTransform {
  transform(value: unknown, _metadata: ArgumentMetadata): unknown {
    if (typeof value === 'object' && value !== null && 'item' in value) return value
    throw new BadRequestException('Not an order.')
  }
}

class SoldOut extends Error {}

@Catch(SoldOut)
class SoldOutFilter implements ExceptionFilter {
  catch(_error: SoldOut, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: unknown): void } }>()
    response.status(422).send({ reason: 'sold out' })
  }
}

interface AnyResponse {
  status(code: number): AnyResponse
  send(body: unknown): unknown
}

@UseGuards(SignedIn)
@Controller('orders')
export class OrdersController {
  constructor(@Inject(Journal) private readonly journal: Journal) {}

  @Post()
  @Idempotent({ name: 'order.place', effect: 'transaction' })
  async place(@Body() { item }: Order, @Once() { tx }: TransactionRouteContext<SqliteTx>) {
    this.journal.ran.push(item)
    await tx.query('insert into orders (item) values (?)', [item])
    if (item === 'nothing') throw new ConflictException('We have none.')
    if (item === 'broken') throw new Error('It broke.')
    return { item }
  }

  @Idempotent({ name: 'order.wrap', effect: 'external' })
  @Post('wrapped')
  @HttpCode(202)
  @Header('etag', '"7"')
  @UseInterceptors(Envelope)
  wrap(@Body() { item }: Order, @Once() { effectKey }: LeasedRouteContext) {
    this.journal.ran.push(item)
    return of({ item, effectKey })
  }

  @Post('elsewhere')
  @Redirect('https://example.com/none', 303)
  @Idempotent({ name: 'order.elsewhere', effect: 'repeatable' })
  elsewhere(@Body() { item }: Order) {
    this.journal.ran.push(item)
    return { url: `https://example.com/${item}` }
  }

  @Post('by-hand')
  @Idempotent({ name: 'order.by-hand', effect: 'external' })
  async byHand(@Res() response: AnyResponse, @Body() { item }: Order) {
    this.journal.ran.push(item)
    await response.status(409).send({ item })
  }

  @Post('file')
  @Idempotent({ name: 'order.file', effect: 'external' })
  file(@Body() { item }: Order) {
    this.journal.ran.push(item)
    return new StreamableFile(Buffer.from(`receipt of ${item}`), { type: 'text/plain', disposition: 'inline' })
  }

  @Post('filtered')
  @UseFilters(SoldOutFilter)
  @Idempotent({ name: 'order.filtered', effect: 'external' })
  filtered(@Body() { item }: Order) {
    this.journal.ran.push(item)
    throw new SoldOut()
  }

  @Post('slow')
  @UseInterceptors(Impatient)
  @Idempotent({ name: 'order.slow', effect: 'external', whileRunning: 'conflict' })
  async slow(@Body() { item }: Order) {
    this.journal.ran.push(item)
    await this.journal.open.promise
    return { item }
  }

  @Post('piped')
  @UsePipes(OnlyOrders)
  @Idempotent({ name: 'order.piped', effect: 'external' })
  piped(@Body() { item }: Order, @Once() { attemptNumber }: LeasedRouteContext) {
    return { item, attemptNumber }
  }

  @Post('alike')
  @Idempotent({
    name: 'order.alike',
    effect: 'external',
    key: 'optional',
    content: { of: (body: Order) => [body.item], withinMs: 15 * MINUTE },
  })
  alike(@Req() _request: unknown, @Body() { item }: Order, @Once() once: LeasedRouteContext | null) {
    this.journal.ran.push(item)
    return { item, protected: once !== null }
  }
}

/** One instance per request. */
@Controller({ path: 'scoped', scope: Scope.REQUEST })
export class ScopedController extends OrdersController {
  @Post('again')
  @Idempotent({ name: 'order.scoped', effect: 'external' })
  again(@Body() { item }: Order) {
    return this.constructor.name + item
  }
}

@Controller('operations')
export class OperationsController {
  @Get(':id')
  @ShowOperation()
  show(): void {}
}

export function shopModule(ledger: Ledger<SqliteTx>, journal: Journal) {
  @Module({
    imports: [
      OnceonlyModule.forRootAsync({
        inject: [],
        useFactory: async () => ({
          ledger,
          who: (request) => ({ tenant: 'acme', caller: String(request.headers['x-user'] ?? 'anonymous') }),
        }),
      }),
    ],
    controllers: [OrdersController, ScopedController, OperationsController],
    providers: [{ provide: Journal, useValue: journal }],
  })
  class ShopModule {}
  return ShopModule
}
