import type { FastifyInstance } from 'fastify'
import type { Config } from '../config.ts'
import type { Log } from '../logs.ts'
import type { Base } from '../store.ts'
import type { Watch } from '../watch.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import { createNetwork } from './network.ts'
import { createRegions } from './regions.ts'
import { addDemo, addReads, addSwitches } from './routes.ts'
import { openSockets } from './socket.ts'

interface Parts {
  readonly base: Base
  readonly workspaces: Workspaces
  readonly config: Config
  readonly demoKey: string
  readonly log: Log
  readonly watch: Watch
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1'])

/** The chat: five regions in this process, rooms of workspaces, and, on loopback, switches that break the network. */
export function addChat(server: FastifyInstance, parts: Parts): { stop(): Promise<void> } {
  const { base, workspaces, config, demoKey, log, watch } = parts
  const network = createNetwork()
  const regions = createRegions(base, network, log, watch)
  const sockets = openSockets(server, { workspaces, regions, network })
  // Before the server waits for its connections to end: these do not end by themselves.
  server.addHook('preClose', () => sockets.stop())
  addReads(server, { base, workspaces, regions, network })
  // Elsewhere a network breaks without our help, and nobody shall be able to break it for others.
  if (LOOPBACK.has(config.host)) {
    addSwitches(server, { base, workspaces, regions, network })
    addDemo(server, { apiKey: demoKey, switches: true })
  }
  return { stop: () => regions.stop() }
}
