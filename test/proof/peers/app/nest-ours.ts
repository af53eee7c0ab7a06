import { Body, Controller, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { TypeOrmModule } from '@nestjs/typeorm'
import { createLedger } from 'onceonly'
import { Idempotent, Once, OnceonlyModule, type TransactionRouteContext } from 'onceonly/nest'
import { postgresStore } from 'onceonly/postgres'
import { typeorm } from 'onceonly/typeorm'
import type { Pool } from 'pg'
import { DataSource, type EntityManager } from 'typeorm'
import { Order } from './nest-order.js'

@Controller('orders')
class OrdersController {
  @Post()
  @Idempotent({ name: 'order.place', effect: 'transaction' })
  async place(@Body() { item }: { item: string }, @Once() { tx }: TransactionRouteContext<EntityManager>) {
    const { id } = await tx.save(Order, { item })
    return { id }
  }
}

export async function createApp(pool: Pool) {
  @Module({
    imports: [
      TypeOrmModule.forRoot({ type: 'postgres', url: pool.options.connectionString, entities: [Order] }),
      OnceonlyModule.forRootAsync({
        inject: [DataSource],
        useFactory: (dataSource: DataSource) => ({
          ledger: createLedger({ store: postgresStore(pool), transactions: typeorm(dataSource) }),
          who: (request) => ({ tenant: 'acme', caller: String(request.headers['x-user'] ?? 'anonymous') }),
        }),
      }),
    ],
    controllers: [OrdersController],
  })
  class AppModule {}
  return await NestFactory.create(AppModule, { rawBody: true, logger: false })
}
