import { Module } from '@nestjs/common'
import { TypeOrmModule } from '@nestjs/typeorm'
import { createLedger } from 'onceonly'
import { OnceonlyModule } from 'onceonly/nest'
import { postgresStore } from 'onceonly/postgres'
import { typeorm } from 'onceonly/typeorm'
import { Pool } from 'pg'
import { DataSource } from 'typeorm'
import { Order } from './order.entity.js'
import { OrdersController } from './orders.controller.js'

const url = process.env['DATABASE_URL']
const pool = new Pool({ connectionString: url })

@Module({
  imports: [
    // In production: migrations, in place of `synchronize`.
    TypeOrmModule.forRoot({ type: 'postgres', url, entities: [Order], synchronize: true }),
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
export class AppModule {}
