import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { frontLimits } from '../front/limits.ts'

/** Where a server listens; port 0 lets the system choose one. */
export interface Bound {
  readonly port: number
  readonly host: string
}

/** Rejects where the port cannot be had, instead of leaving that to a listener of errors. */
export function listen(server: Server, port: number, host = '127.0.0.1'): Promise<Bound> {
  const { promise, resolve, reject } = Promise.withResolvers<Bound>()
  server.once('error', reject)
  server.listen({ port, host, backlog: frontLimits.backlog }, () => {
    server.off('error', reject)
    const { port: given, address } = server.address() as AddressInfo
    resolve({ port: given, host: address })
  })
  return promise
}
