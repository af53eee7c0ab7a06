import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Access } from 'onceonly/console'
import { shivizParser, toShiViz } from 'onceonly/stream'
import { requestOf } from '../console/request.ts'
import { type FieldError, sendInvalid } from '../http/problem.ts'
import type { Base } from '../store.ts'
import { callerOf, requireKey } from '../workspaces/authenticate.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import * as document from './document.ts'
import { eventsOf, type HistoryMessage, readHistory } from './history.ts'
import type { Network } from './network.ts'
import { parseClientLink, parseRegionLink } from './parse.ts'
import type { Presence } from './presence.ts'
import type { Regions } from './regions.ts'
import type { KnownRooms } from './rooms.ts'
import { isRegion, isRoom, type RegionName, regionNames, roomOf } from './words.ts'

interface Parts {
  readonly base: Base
  readonly workspaces: Workspaces
  readonly regions: Regions
  readonly network: Network
  readonly presence: Presence
}

type OfRegion = { Params: { readonly region: string } }
type OfClient = { Params: { readonly client: string } }
type OfRoom = { Params: { readonly room: string }; Querystring: { readonly region?: string } }

/** What a page needs beside its connection: the regions, and what was said in a room. */
export function addReads(server: FastifyInstance, parts: Parts & { readonly known: Pick<KnownRooms, 'has'> }): void {
  const { workspaces, regions, network, presence, known } = parts
  const onRequest = requireKey(workspaces, 'chat')

  /** Reading the log of a room makes one: a room that nobody has entered has nothing to read. */
  async function historyOf(
    request: FastifyRequest<OfRoom>,
    { region, room }: Asked,
  ): Promise<readonly HistoryMessage[]> {
    const isKnown = await known.has(callerOf(request).workspaceId, request.params.room)
    return isKnown ? readHistory(regions.logOf(region), regions.order, room) : []
  }

  server.get('/api/chat/regions', { onRequest, config: { declaration: document.listRegions } }, async (request) => {
    const { workspaceId, caller } = callerOf(request)
    return {
      workspace: workspaceId,
      caller,
      regions: regionNames.map((region) => viewOf({ network, presence }, workspaceId, region)),
    }
  })

  const messages = { onRequest, config: { declaration: document.readMessages } }
  server.get<OfRoom>('/api/chat/rooms/:room/messages', messages, async (request, reply) => {
    const asked = askedOf(request)
    if ('errors' in asked) return sendInvalid(reply, asked.errors)
    const history = await historyOf(request, asked)
    const shown = history.map(({ acceptedAtMs, after: _after, ...message }) => ({
      ...message,
      acceptedAt: new Date(acceptedAtMs).toISOString(),
    }))
    return { region: asked.region, messages: shown }
  })

  const shiviz = { onRequest, config: { declaration: document.readShiViz } }
  server.get<OfRoom>('/api/chat/rooms/:room/shiviz', shiviz, async (request, reply) => {
    const asked = askedOf(request)
    if ('errors' in asked) return sendInvalid(reply, asked.errors)
    const history = await historyOf(request, asked)
    return reply
      .type('text/plain; charset=utf-8')
      .header('content-disposition', `attachment; filename="${request.params.room}.shiviz.log"`)
      .header('x-shiviz-parser', shivizParser)
      .send(toShiViz(eventsOf(history)))
  })
}

/** The switches of the demo: they break the network of the caller's own workspace, in this process, and mend it. */
export function addSwitches(server: FastifyInstance, { base, workspaces, network, presence }: Parts): void {
  const onRequest = requireKey(workspaces, 'chat')

  const region = { onRequest, config: { declaration: document.setRegionLink } }
  server.put<OfRegion>('/api/chat/regions/:region/link', region, async (request, reply) => {
    const { region: name } = request.params
    if (!isRegion(name)) return reply.callNotFound()
    const parsed = parseRegionLink(request.body)
    if ('errors' in parsed) return sendInvalid(reply, parsed.errors)
    const { workspaceId } = callerOf(request)
    network.setRegion(workspaceId, name, parsed.link)
    return viewOf({ network, presence }, workspaceId, name)
  })

  const client = { onRequest, config: { declaration: document.setClientLink } }
  server.put<OfClient>('/api/chat/clients/:client/link', client, async (request, reply) => {
    const { client: name } = request.params
    const parsed = parseClientLink(name, request.body)
    if ('errors' in parsed) return sendInvalid(reply, parsed.errors)
    const { delayMs, offlineMs } = parsed.link
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

interface Asked {
  /** By the name that streams know it by. */
  readonly room: string
  readonly region: RegionName
}

function askedOf(request: FastifyRequest<OfRoom>): Asked | { readonly errors: readonly FieldError[] } {
  const { room } = request.params
  const { region = regionNames[0] } = request.query
  const errors: FieldError[] = []
  if (!isRoom(room)) errors.push({ field: 'room', detail: 'is not the name of a room' })
  if (!isRegion(region)) errors.push({ field: 'region', detail: `is none of ${regionNames.join(', ')}` })
  if (errors.length > 0 || !isRegion(region)) return { errors }
  return { room: roomOf(callerOf(request).workspaceId, room), region }
}

/** For a page on the machine of whoever tries this: the demo key, without asking for it. */
export function addDemo(
  server: FastifyInstance,
  access: Pick<Access, 'isLocal'>,
  demo: { readonly apiKey: string; readonly switches: boolean },
): void {
  server.get('/chat/demo', { config: { declaration: document.readDemo } }, async (request, reply) =>
    access.isLocal(requestOf(request)) ? reply.send(demo) : reply.callNotFound(),
  )
}
