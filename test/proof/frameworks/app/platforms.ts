import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import type { INestApplication, Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'

/** Both platforms of Nest, on a free port of the loopback interface. */
export const platforms = ['express', 'fastify'] as const
export type Platform = (typeof platforms)[number]

export async function start(
  platform: Platform,
  module: Type<unknown>,
  prepare: (app: INestApplication) => unknown = () => {},
  { rawBody = true, bodyLimit }: { rawBody?: boolean; bodyLimit?: number } = {},
): Promise<{ port: number; app: INestApplication }> {
  const options = { logger: false as const, rawBody, forceCloseConnections: true }
  const app =
    platform === 'express'
      ? await NestFactory.create(module, options)
      : await NestFactory.create(
          module,
          new FastifyAdapter({ forceCloseConnections: true, ...(bodyLimit === undefined ? {} : { bodyLimit }) }),
          options,
        )
  await prepare(app)
  await app.listen(0, '127.0.0.1')
  return { port: (app.getHttpServer().address() as AddressInfo).port, app }
}
