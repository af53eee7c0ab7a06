import { Module } from '@nestjs/common'
import { createLedger } from 'onceonly'
import { OnceonlyModule } from 'onceonly/nest'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'
import { OrdersController } from './orders.controller.js'

const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })

@Module({
  imports: [
    OnceonlyModule.forRoot({
      ledger: createLedger({ store: postgresStore(pool) }),
      // Derive both from your authentication; they must stay the same when a token is refreshed.
      who: (request) => ({ tenant: 'acme', caller: String(request.headers['x-user'] ?? 'anonymous') }),
    }),
  ],
  controllers: [OrdersController],
})
export class AppModule {}
