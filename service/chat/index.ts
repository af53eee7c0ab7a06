import type { FastifyInstance } from 'fastify'
import type { HistoryEvent } from 'onceonly/stream'
import type { Config } from '../config.ts'
import type { Log } from '../logs.ts'
import type { Base } from '../store.ts'
import type { Watch } from '../watch.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import { eventsOf, readHistory } from './history.ts'
import { createNetwork } from './network.ts'
import { createOwners } from './owners.ts'
import { createRegions } from './regions.ts'
import { addDemo, addReads, addSwitches } from './routes.ts'
import { openSockets } from './socket.ts'
import { isRegion, regionNames } from './words.ts'

interface Parts {
  readonly base: Base
  readonly workspaces: Workspaces
  readonly config: Config
  readonly demoKey: string
  readonly log: Log
  readonly watch: Watch
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1'])

/** What operators see of the rooms of all workspaces. */
export interface Rooms {
  /** Open sessions of this process. */
  sessions(): readonly { readonly region: string; readonly sessions: number }[]
  /** Null when there is no such region. The room is one that exists. */
  history(room: string, region: string): Promise<readonly HistoryEvent[] | null>
}

/** The chat: five regions in this process, rooms of workspaces, and, on loopback, switches that break the network. */
export function addChat(server: FastifyInstance, parts: Parts): { readonly rooms: Rooms; stop(): Promise<void> } {
  const { base, workspaces, config, demoKey, log, watch } = parts
  const network = createNetwork()
  const regions = createRegions(base, network, log, watch)
  const sockets = openSockets(server, { workspaces, regions, network, owners: createOwners(base) })
  // Before the server waits for its connections to end: these do not end by themselves.
  server.addHook('preClose', () => sockets.stop())
  addReads(server, { base, workspaces, regions, network })
  // Elsewhere a network breaks without our help, and nobody shall be able to break it for others.
  if (LOOPBACK.has(config.host)) {
    addSwitches(server, { base, workspaces, regions, network })
    addDemo(server, { apiKey: demoKey, switches: true })
  }
  const rooms: Rooms = {
    sessions: () => regionNames.map((region) => ({ region, sessions: regions.regionOf(region).sessions })),
    history: async (room, region) =>
      isRegion(region) ? eventsOf(await readHistory(regions.logOf(region), regions.order, room)) : null,
  }
  return { rooms, stop: () => regions.stop() }
}
