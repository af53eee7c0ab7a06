import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Served } from 'onceonly/testing'

/** Listens on a free port; stopping cuts whatever a test left open. */
export async function listen(server: Server): Promise<Served> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
