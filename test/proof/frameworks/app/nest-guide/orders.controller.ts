import { Body, Controller, Post } from '@nestjs/common'
import { IsInt, IsString, Min } from 'class-validator'
import type { TransactionRouteContext } from 'onceonly/nest'
import { Idempotent, Once } from 'onceonly/nest'
import type { PostgresTx } from 'onceonly/postgres'

export class PlaceOrder {
  @IsString()
  item = ''

  @IsInt()
  @Min(1)
  count = 1
}

@Controller('orders')
export class OrdersController {
  @Post()
  @Idempotent({ name: 'order.place', effect: 'transaction' })
  async place(@Body() order: PlaceOrder, @Once() { tx }: TransactionRouteContext<PostgresTx>) {
    await tx.query('insert into orders (item, count) values (?, ?)', [order.item, order.count])
    return { item: order.item, count: order.count }
  }
}
