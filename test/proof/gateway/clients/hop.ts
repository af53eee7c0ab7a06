import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import type { TestContext } from 'node:test'
import { CELL } from './command.ts'

/** The network between clients and the gateway: it counts tries, and loses answers. */
export interface Hop {
  readonly port: number
  tries(cell: string): number
}

const INTERIM = 'HTTP/1.1 100 '

/** @param losesFirst whether the answer to the first try of a command never arrives */
export async function openHop(
  context: TestContext,
  targetPort: number,
  losesFirst: (cell: string) => boolean,
): Promise<Hop> {
  const tries = new Map<string, number>()
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1')
    let head = ''
    let current: string | null = null
    let losing = false
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.once('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    client.on('data', (chunk) => {
      if (current === null) {
        head += chunk.toString('latin1')
        current = CELL.exec(head)?.[0] ?? null
        if (current !== null) {
          const count = (tries.get(current) ?? 0) + 1
          tries.set(current, count)
          losing = count === 1 && losesFirst(current)
        }
      }
      target.write(chunk)
    })
    target.on('data', (chunk) => {
      if (chunk.toString('latin1').startsWith(INTERIM)) return void client.write(chunk)
      if (losing) return void client.resetAndDestroy()
      head = ''
      current = null
      client.write(chunk)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { port, tries: (cell) => tries.get(cell) ?? 0 }
}
