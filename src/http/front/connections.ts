import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { addressKey } from './addresses.ts'
import { frontLimits } from './limits.ts'
import type { Shares } from './shares.ts'

/** Closes connections past the share of their address at once: one that says nothing costs memory, too. */
export function limitConnections(server: Server, connections: Shares): void {
  server.on('connection', (socket: Socket) => {
    const key = addressKey(socket.remoteAddress ?? '')
    if (connections.enter(key)) socket.once('close', () => connections.leave(key))
    else socket.destroy()
  })
}

/** Of the files that a process may have open: the rest is for the store, for upstreams and for bodies. */
const CLIENTS_SHARE = 0.5

/**
 * How many connections a process takes on: each is an open file, and without free files no connection is accepted, whatever
 * the shares are.
 */
export function connectionsMost(limits = limitsOfProcess()): number {
  const [, files] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
  const { connections } = frontLimits
  return files === undefined ? connections : Math.min(connections, Math.floor(Number(files) * CLIENTS_SHARE))
}

/** From Linux's `/proc`; empty elsewhere. */
function limitsOfProcess(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return ''
  }
}
