import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import type { World } from './world.ts'

const FLOOD = '127.0.0.1'
/** Another client, by its address. */
export const QUIET = '127.0.0.2'

/** Connections that send the same bytes and then nothing more. */
export function flood(
  context: TestContext,
  port: number,
  count: number,
  bytes: string,
): readonly (Socket & { received?: string })[] {
  const sockets = Array.from({ length: count }, () => {
    const socket: Socket & { received?: string } = connect({ port, host: '127.0.0.1', localAddress: FLOOD })
    socket.on('error', () => {}).on('data', (data) => (socket.received = (socket.received ?? '') + String(data)))
    socket.write(bytes)
    return socket
  })
  context.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}

export async function askFrom(
  localAddress: string,
  port: number,
  method: string,
  path: string,
  body = '',
): Promise<number> {
  const headers = { 'content-length': body.length, 'idempotency-key': 'quiet' }
  const request = httpRequest({ host: '127.0.0.1', port, method, path, localAddress, agent: false, headers })
  request.end(body)
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  await text(answer)
  return answer.statusCode ?? 0
}

export async function allQuiet(world: World): Promise<void> {
  await until(
    'nothing is under way any more',
    () => world.load,
    (load) => Object.values(load).every((value) => value === 0),
  )
}
