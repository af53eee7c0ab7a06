import type { FastifyInstance } from 'fastify'
import type { ConsoleAccess } from 'onceonly/console'
import type { ShivizEvent } from 'onceonly/stream/parts'
import type { ServerParts } from '../parts.ts'
import type { Sweep } from '../workspaces/retention.ts'
import { eventsOf, readHistory } from './history.ts'
import { createNetwork } from './network.ts'
import { createOwners } from './owners.ts'
import { createPresence } from './presence.ts'
import { createRegions } from './regions.ts'
import { chatRetention } from './retention.ts'
import { createKnownRooms } from './rooms.ts'
import { addDemo, addReads, addSwitches } from './routes.ts'
import { openSockets } from './socket.ts'
import { isRegion, regionNames } from './words.ts'

interface Parts extends Pick<ServerParts, 'base' | 'workspaces' | 'config' | 'quotas' | 'log' | 'watch'> {
  /** Null without a demo. */
  readonly demoKey: string | null
  /** What notifications of a storage are sent with: a page of the demo sends some. */
  readonly hookSecret: string
  readonly access: Pick<ConsoleAccess, 'isLocal'>
}

/** What operators see of the rooms of all workspaces. */
export interface Rooms {
  /** Open sessions of this process. */
  sessions(): readonly { readonly region: string; readonly sessions: number }[]
  /** Null when there is no such region. The room is one that exists. */
  history(room: string, region: string): Promise<readonly ShivizEvent[] | null>
}

interface Chat {
  readonly rooms: Rooms
  readonly sweeps: readonly Sweep[]
  stop(): Promise<void>
}

/** The chat: five regions in this process, rooms of workspaces, and, in a demo, switches that break the network. */
export function addChat(server: FastifyInstance, parts: Parts): Chat {
  const { base, workspaces, config, quotas, demoKey, hookSecret, access, log, watch } = parts
  const network = createNetwork()
  const retention = chatRetention(config)
  const regions = createRegions({ base, network, retention, log, watch })
  const presence = createPresence()
  const known = createKnownRooms(base, quotas, retention)
  const owners = createOwners(base, quotas, retention)
  const sockets = openSockets(server, {
    workspaces,
    regions,
    network,
    presence,
    owners,
    rooms: known,
    quotas,
  })
  // Before the server waits for its connections to end: these do not end by themselves.
  server.addHook('preClose', () => sockets.stop())
  addReads(server, { base, regions, network, presence, known })
  // Elsewhere a network breaks without our help, and no client may break it for others.
  if (demoKey !== null) {
    addSwitches(server, { base, regions, network, presence })
    addDemo(server, access, { apiKey: demoKey, hookSecret, switches: true })
  }
  const rooms: Rooms = {
    sessions: () => regionNames.map((region) => ({ region, sessions: regions.regionOf(region).sessions })),
    history: async (room, region) =>
      isRegion(region) ? eventsOf(await readHistory(regions.logOf(region), regions.order, room)) : null,
  }
  return { rooms, sweeps: [known.sweep, owners.sweep], stop: () => regions.stop() }
}
