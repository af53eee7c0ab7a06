import { type AddressInfo, Socket } from 'node:net'
import type { INestApplication } from '@nestjs/common'
import type { Express } from 'express'
import type { FastifyInstance } from 'fastify'
import pg from 'pg'

/**
 * Serves one of the applications: `node serve.ts FILE URL [die]`. With `die`, the process is killed when the database has
 * said that the order is inserted, and before anything that follows is sent.
 */
const [file = '', connectionString = '', die] = process.argv.slice(2)
type App = Express | FastifyInstance | INestApplication
const { createApp } = (await import(`./${file}`)) as { createApp(pool: pg.Pool): App | Promise<App> }
const app = await createApp(new pg.Pool({ connectionString }))
if (die === 'die') dieAfterInsert()
if ('getHttpServer' in app) {
  await app.listen(0, '127.0.0.1')
  console.log(new URL(await app.getUrl()).port)
} else if ('server' in app) {
  await app.listen({ port: 0, host: '127.0.0.1' })
  console.log((app.server.address() as AddressInfo).port)
} else {
  const server = app.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
}

function dieAfterInsert(): void {
  const inserting = new WeakSet<object>()
  const { write, emit } = Socket.prototype
  Socket.prototype.write = function (this: Socket, ...given: readonly unknown[]) {
    if (/insert into "?orders/i.test(Buffer.from(given[0] as Uint8Array).toString())) inserting.add(this)
    return write.apply(this, given as never)
  }
  Socket.prototype.emit = function (this: Socket, event: string | symbol, ...given: readonly unknown[]) {
    const said = event === 'data' && inserting.has(this) && Buffer.from(given[0] as Uint8Array).includes('INSERT 0 1')
    if (said) process.kill(process.pid, 'SIGKILL')
    return emit.apply(this, [event, ...given] as never)
  }
}
