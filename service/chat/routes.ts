import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ConsoleAccess } from 'onceonly/console'
import { shivizParser, toShiViz } from 'onceonly/stream/parts'
import { requestOf } from '../console/request.ts'
import type { InputTypes } from '../http/input.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import * as document from './document.ts'
import { eventsOf, type HistoryMessage, readHistory } from './history.ts'
import type { Network } from './network.ts'
import type { Presence } from './presence.ts'
import type { Regions } from './regions.ts'
import type { KnownRooms } from './rooms.ts'
import { isRegion, type RegionName, regionNames, roomOf } from './words.ts'

interface Parts extends Pick<ServerParts, 'base'> {
  readonly regions: Regions
  readonly network: Network
  readonly presence: Presence
}

/** What a page needs beside its connection: the regions, and what was said in a room. */
export function addReads(server: FastifyInstance, parts: Parts & { readonly known: Pick<KnownRooms, 'has'> }): void {
  const { regions, network, presence, known } = parts
  const typed = server.withTypeProvider<InputTypes>()

  /** Reading the log of a room creates the room: one that has never been entered has nothing to read. */
  async function historyOf(
    request: FastifyRequest,
    name: string,
    region: RegionName,
  ): Promise<readonly HistoryMessage[]> {
    const { workspaceId } = callerOf(request)
    if (!(await known.has(workspaceId, name))) return []
    return readHistory(regions.logOf(region), regions.order, roomOf(workspaceId, name))
  }

  server.get('/api/chat/regions', { config: { declaration: document.listRegions } }, async (request) => {
    const { workspaceId, caller } = callerOf(request)
    return {
      workspace: workspaceId,
      caller,
      regions: regionNames.map((region) => viewOf({ network, presence }, workspaceId, region)),
    }
  })

  typed.get('/api/chat/rooms/:room/messages', routeOptions(document.readMessages), async (request) => {
    const { region = regionNames[0] } = request.query
    const history = await historyOf(request, request.params.room, region)
    const shown = history.map(({ acceptedAtMs, after: _after, ...message }) => ({
      ...message,
      acceptedAt: new Date(acceptedAtMs).toISOString(),
    }))
    return { region, messages: shown }
  })

  const shiviz = routeOptions(document.readShiViz)
  typed.get('/api/chat/rooms/:room/shiviz', shiviz, async (request, reply) => {
    const history = await historyOf(request, request.params.room, request.query.region ?? regionNames[0])
    return reply
      .type('text/plain; charset=utf-8')
      .header('content-disposition', `attachment; filename="${request.params.room}.shiviz.log"`)
      .header('x-shiviz-parser', shivizParser)
      .send(toShiViz(eventsOf(history)))
  })
}

/** The switches of the demo: they break the network of the caller's own workspace, in this process, and mend it. */
export function addSwitches(server: FastifyInstance, { base, network, presence }: Parts): void {
  const typed = server.withTypeProvider<InputTypes>()

  const region = routeOptions(document.setRegionLink)
  typed.put('/api/chat/regions/:region/link', region, async (request, reply) => {
    const { region: name } = request.params
    if (!isRegion(name)) return reply.callNotFound()
    const { state, delayMs = 0 } = request.body
    const { workspaceId } = callerOf(request)
    network.setRegion(workspaceId, name, { state, delayMs })
    return viewOf({ network, presence }, workspaceId, name)
  })

  const client = routeOptions(document.setClientLink)
  typed.put('/api/chat/clients/:client/link', client, async (request) => {
    const { client: name } = request.params
    const { delayMs = 0, offlineMs = 0 } = request.body
    const offlineUntilMs = offlineMs === 0 ? null : performance.now() + offlineMs
    network.setClient(callerOf(request).workspaceId, name, { delayMs, offlineUntilMs })
    const offlineUntil = offlineMs === 0 ? null : new Date((await base.now()) + offlineMs).toISOString()
    return { client: name, delayMs, offlineUntil }
  })
}

/** Of this workspace alone. */
function viewOf({ network, presence }: Pick<Parts, 'network' | 'presence'>, workspaceId: string, region: RegionName) {
  return { region, ...network.regionOf(workspaceId, region), clients: presence.count(workspaceId, region) }
}

/** For a page on the machine of the demo: its key, and the secret of its hook, without asking for them. */
export function addDemo(
  server: FastifyInstance,
  access: Pick<ConsoleAccess, 'isLocal'>,
  demo: { readonly apiKey: string; readonly hookSecret: string; readonly switches: boolean },
): void {
  server.get('/chat/demo', { config: { declaration: document.readDemo } }, async (request, reply) =>
    access.isLocal(requestOf(request)) ? reply.send(demo) : reply.callNotFound(),
  )
}
