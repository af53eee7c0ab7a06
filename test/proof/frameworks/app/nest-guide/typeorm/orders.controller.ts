import { Body, Controller, Post } from '@nestjs/common'
import { IsString } from 'class-validator'
import type { TransactionRouteContext } from 'onceonly/nest'
import { Idempotent, Once } from 'onceonly/nest'
import type { EntityManager } from 'typeorm'
import { Order } from './order.entity.js'

export class PlaceOrder {
  @IsString()
  item = ''
}

@Controller('orders')
export class OrdersController {
  @Post()
  @Idempotent({ name: 'order.place', effect: 'transaction' })
  async place(@Body() order: PlaceOrder, @Once() { tx }: TransactionRouteContext<EntityManager>) {
    return await tx.save(Order, { item: order.item })
  }
}
