import { Body, Controller, Module, Post } from '@nestjs/common'
import { TypeOrmModule } from '@nestjs/typeorm'
import { createLedger } from 'onceonly'
import type { TransactionRouteContext } from 'onceonly/nest'
import { Idempotent, Once, OnceonlyModule } from 'onceonly/nest'
import { postgresStore } from 'onceonly/postgres'
import { typeorm } from 'onceonly/typeorm'
import { Pool } from 'pg'
import { Column, DataSource, Entity, type EntityManager, PrimaryGeneratedColumn } from 'typeorm'
import { PlaceOrder } from './orders.controller.ts'

const url = process.env['DATABASE_URL'] ?? ''
const pool = new Pool({ connectionString: url })

@Entity('orders')
export class Order {
  @PrimaryGeneratedColumn()
  id: number = 0

  @Column('text')
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

@Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'postgres', url, entities: [Order] }),
    OnceonlyModule.forRootAsync({
      inject: [DataSource],
      useFactory: (dataSource: DataSource) => ({
        ledger: createLedger({ store: postgresStore(pool), transactions: typeorm(dataSource) }),
        who: (request: { user: { id: string; orgId: string } }) => ({
          tenant: request.user.orgId,
          caller: request.user.id,
        }),
      }),
    }),
  ],
  controllers: [OrdersController],
})
export class AppModule {}
