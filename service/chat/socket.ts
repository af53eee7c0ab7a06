import type { FastifyInstance } from 'fastify'
import { closeCodes, type HelloFrame } from 'onceonly/stream/protocol'
import {
  type Admission,
  createSocketServer,
  type Refusal,
  type Session,
  type SocketLink,
  type SocketServer,
} from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'
import type { ServerParts } from '../parts.ts'
import { mayUse } from '../workspaces/workspaces.ts'
import type { ClientWeather, Network } from './network.ts'
import type { Owners } from './owners.ts'
import type { Presence } from './presence.ts'
import type { Regions } from './regions.ts'
import type { KnownRooms } from './rooms.ts'
import { createSlowLink } from './slow-link.ts'
import { isRegion, isRoom, type RegionName, ROOM_CHARS_MOST, roomOf } from './words.ts'

export const SOCKET_PATH = '/chat/socket'

interface Guest {
  readonly workspaceId: string
  readonly caller: string
  readonly region: RegionName
}

interface Parts extends Pick<ServerParts, 'workspaces' | 'quotas'> {
  readonly regions: Regions
  readonly network: Network
  readonly presence: Presence
  readonly owners: Owners
  readonly rooms: Pick<KnownRooms, 'enter'>
}

/**
 * Connections of the chat: a holder of a key of a workspace may be in all of its rooms, in the region that it names; but
 * not under the name of another holder's client.
 */
export function openSockets({ server }: FastifyInstance, parts: Parts): SocketServer {
  const { workspaces, regions, network, presence, owners, rooms, quotas } = parts

  async function admit(url: string | undefined, key: string | null): Promise<Admission<Guest>> {
    const region = URL.parse(url ?? '', 'http://server')?.searchParams.get('region')
    if (!isRegion(region)) return refused(404, 'Name a region of this server: ?region=…')
    const caller = key === null ? null : await workspaces.authenticate(key)
    if (caller === null) return refused(401, 'Send an API key, as a bearer token or as a subprotocol.')
    if (!mayUse(caller, 'chat')) return refused(403, 'This caller has no right to use chat.')
    const full = quotas.full('connections', caller.workspaceId)
    if (full !== null) return refused(429, full.message)
    return { kind: 'admitted', who: { workspaceId: caller.workspaceId, caller: caller.caller, region } }
  }

  function begin(real: SocketLink, { workspaceId, caller, region }: Guest): Session {
    // Others may have come in since it was admitted.
    const full = quotas.full('connections', workspaceId)
    if (full !== null) {
      real.close(closeCodes.flooded, full.message)
      return REFUSED
    }
    const place = quotas.enter('connections', workspaceId)
    /** The people on this connection: all of them share the weather of each. */
    const clients = new Map<string, () => void>()
    const leave = presence.enter(workspaceId, region)
    const slow = createSlowLink(real, () =>
      worst([...clients.keys()].map((each) => network.clientOf(workspaceId, each))),
    )
    const roomNameOf = (room: string) => roomOf(workspaceId, room)
    async function authorize({ client, room }: HelloFrame): Promise<Refusal | null> {
      if (!isRoom(room)) return `the name of a room has at most ${ROOM_CHARS_MOST} characters`
      if (!clients.has(client)) clients.set(client, network.watch(workspaceId, client, slow.changed))
      slow.changed()
      return (await owners.refuses(workspaceId, client, caller)) ?? rooms.enter(workspaceId, room)
    }
    const inside = slow.through(regions.regionOf(region).connect(slow.link, { authorize, roomOf: roomNameOf }))
    return {
      received: (data) => inside.received(data),
      drained: () => inside.drained(),
      closed() {
        place[Symbol.dispose]()
        leave()
        for (const unwatch of clients.values()) unwatch()
        inside.closed()
      },
    }
  }

  return createSocketServer({
    server,
    path: SOCKET_PATH,
    WebSocketServer,
    admit: (request, key) => admit(request.url, key),
    begin,
  })
}

const REFUSED: Session = { received: () => {}, drained: () => {}, closed: () => {} }

function worst(all: readonly ClientWeather[]): ClientWeather {
  const untilMs = all.flatMap(({ offlineUntilMs }) => (offlineUntilMs === null ? [] : [offlineUntilMs]))
  return {
    delayMs: Math.max(0, ...all.map(({ delayMs }) => delayMs)),
    offlineUntilMs: untilMs.length === 0 ? null : Math.max(...untilMs),
  }
}

function refused(status: number, reason: string): Admission<Guest> {
  return { kind: 'refused', status, reason }
}
