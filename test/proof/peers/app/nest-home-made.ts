import { createHash } from 'node:crypto'
import { BadRequestException, Body, ConflictException, Controller, Headers, Module, Post, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { TypeOrmModule } from '@nestjs/typeorm'
import type { Response } from 'express'
import type { Pool } from 'pg'
import { Column, DataSource, Entity, PrimaryColumn } from 'typeorm'
import { Order } from './nest-order.js'

// create table request_keys (caller text, key text, digest text, status int, body jsonb, primary key (caller, key))
@Entity('request_keys')
class RequestKey {
  @PrimaryColumn('text')
  caller = ''

  @PrimaryColumn('text')
  key = ''

  @Column('text')
  digest = ''

  @Column('int', { nullable: true })
  status: number | null = null

  @Column('jsonb', { nullable: true })
  body: object | null = null
}

@Controller('orders')
class OrdersController {
  constructor(private readonly dataSource: DataSource) {}

  @Post()
  async place(
    @Body() body: { item: string },
    @Headers('x-user') caller = 'anonymous',
    @Headers('idempotency-key') key: string | undefined,
    @Res({ passthrough: true }) response: Response,
  ) {
    if (key === undefined) throw new BadRequestException('Idempotency-Key is missing')
    const digest = createHash('sha256').update(JSON.stringify(body)).digest('hex')
    return await this.dataSource.transaction(async (tx) => {
      // A twin waits here until the first one has committed.
      const claim = await tx
        .createQueryBuilder()
        .insert()
        .into(RequestKey)
        .values({ caller, key, digest })
        .orIgnore()
        .returning('key')
        .execute()
      if (claim.raw.length === 0) {
        const before = await tx.findOneByOrFail(RequestKey, { caller, key })
        if (before.digest !== digest) throw new ConflictException('The key was used for another body')
        response.status(before.status ?? 201)
        return before.body
      }
      const { id } = await tx.save(Order, { item: body.item })
      await tx.update(RequestKey, { caller, key }, { status: 201, body: { id } })
      return { id }
    })
  }
}

export async function createApp(pool: Pool) {
  @Module({
    imports: [
      TypeOrmModule.forRoot({ type: 'postgres', url: pool.options.connectionString, entities: [Order, RequestKey] }),
    ],
    controllers: [OrdersController],
  })
  class AppModule {}
  return await NestFactory.create(AppModule, { logger: false })
}
