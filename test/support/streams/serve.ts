import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { StreamRegion } from 'onceonly/stream/server'
import { createSocketServer } from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'

/** A region behind WebSockets on loopback; port 0 stands for any that is free. */
export async function serve(region: Pick<StreamRegion, 'connect'>, port: number): Promise<Server> {
  const server = createServer()
  createSocketServer({
    server,
    path: '/socket',
    WebSocketServer,
    admit: async () => ({ kind: 'admitted', who: null }),
    begin: (link) => region.connect(link),
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return server
}
