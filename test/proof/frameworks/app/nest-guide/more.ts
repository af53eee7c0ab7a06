import { Controller, Get, Inject, Module, Post } from '@nestjs/common'
import { createLedger, MINUTE } from 'onceonly'
import type { LeasedRouteContext } from 'onceonly/nest'
import { Idempotent, Once, OnceonlyModule, ShowOperation } from 'onceonly/nest'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'

@Module({ providers: [{ provide: Pool, useFactory: () => new Pool() }], exports: [Pool] })
export class DatabaseModule {}

@Module({
  imports: [
    OnceonlyModule.forRootAsync({
      imports: [DatabaseModule],
      inject: [Pool],
      useFactory: (pool: Pool) => ({
        ledger: createLedger({ store: postgresStore(pool) }),
        who: (request: { user: { id: string; orgId: string } }) => ({
          tenant: request.user.orgId,
          caller: request.user.id,
        }),
      }),
    }),
  ],
})
export class AppModule {}

@Controller('operations')
export class OperationsController {
  @Get(':id')
  @ShowOperation()
  show(): void {}
}

export class Mailer {
  async send(_options: { idempotencyKey: string | undefined }) {
    return { sent: true }
  }
}

@Controller('reminders')
export class RemindersController {
  constructor(@Inject(Mailer) private readonly mailer: Mailer) {}

  @Post()
  @Idempotent({
    name: 'reminder.send',
    effect: 'external',
    key: 'optional',
    content: { of: (body: { to: string; text: string }) => [body.to, body.text], withinMs: 15 * MINUTE },
  })
  send(@Once() once: LeasedRouteContext | null) {
    return this.mailer.send({ idempotencyKey: once?.effectKey })
  }
}
