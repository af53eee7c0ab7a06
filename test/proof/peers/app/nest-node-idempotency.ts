import { Body, Controller, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { TypeOrmModule } from '@nestjs/typeorm'
import { Idempotent, NodeIdempotencyModule, StorageAdapterEnum } from '@node-idempotency/nestjs'
import type { Pool } from 'pg'
import { DataSource } from 'typeorm'
import { Order } from './nest-order.js'

@Controller('orders')
class OrdersController {
  constructor(private readonly dataSource: DataSource) {}

  @Post()
  @Idempotent({ enforceIdempotency: true })
  async place(@Body() { item }: { item: string }) {
    const { identifiers } = await this.dataSource.manager.insert(Order, { item })
    return identifiers[0]
  }
}

export async function createApp(pool: Pool) {
  @Module({
    imports: [
      TypeOrmModule.forRoot({ type: 'postgres', url: pool.options.connectionString, entities: [Order] }),
      NodeIdempotencyModule.forRootAsync({ storage: { adapter: StorageAdapterEnum.memory } }),
    ],
    controllers: [OrdersController],
  })
  class AppModule {}
  return await NestFactory.create(AppModule, { logger: false })
}
