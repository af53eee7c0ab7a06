import type { Server, Socket } from 'node:net'
import { addressKey } from './addresses.ts'
import type { Shares } from './shares.ts'

/** Closes connections past the share of their address at once: one that says nothing costs memory, too. */
export function limitConnections(server: Server, connections: Shares): void {
  server.on('connection', (socket: Socket) => {
    const key = addressKey(socket.remoteAddress ?? '')
    if (connections.enter(key)) socket.once('close', () => connections.leave(key))
    else socket.destroy()
  })
}
