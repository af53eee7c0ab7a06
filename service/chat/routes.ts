import type { FastifyInstance, FastifyRequest } from 'fastify'
import { shivizParser, toShiViz } from 'onceonly/stream'
import { type FieldError, sendInvalid } from '../http/problem.ts'
import type { Base } from '../store.ts'
import { callerOf, requireKey } from '../workspaces/authenticate.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import * as document from './document.ts'
import { eventsOf, readHistory } from './history.ts'
import type { Network } from './network.ts'
import { parseClientLink, parseRegionLink } from './parse.ts'
import type { Regions } from './regions.ts'
import { isRegion, isRoom, type RegionName, regionNames, roomOf } from './words.ts'

interface Parts {
  readonly base: Base
  readonly workspaces: Workspaces
  readonly regions: Regions
  readonly network: Network
}

type OfRegion = { Params: { readonly region: string } }
type OfClient = { Params: { readonly client: string } }
type OfRoom = { Params: { readonly room: string }; Querystring: { readonly region?: string } }

/** What a page needs beside its connection: the regions, and what was said in a room. */
export function addReads(server: FastifyInstance, { workspaces, regions, network }: Parts): void {
  const onRequest = requireKey(workspaces, 'chat')

  server.get('/api/chat/regions', { onRequest, config: { declaration: document.listRegions } }, async (request) => {
    const { workspaceId } = callerOf(request)
    return { regions: regionNames.map((region) => viewOf({ regions, network }, workspaceId, region)) }
  })

  const messages = { onRequest, config: { declaration: document.readMessages } }
  server.get<OfRoom>('/api/chat/rooms/:room/messages', messages, async (request, reply) => {
    const asked = askedOf(request)
    if ('errors' in asked) return sendInvalid(reply, asked.errors)
    const history = await readHistory(regions.logOf(asked.region), regions.order, asked.room)
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
    const history = await readHistory(regions.logOf(asked.region), regions.order, asked.room)
    return reply
      .type('text/plain; charset=utf-8')
      .header('content-disposition', `attachment; filename="${request.params.room}.shiviz.log"`)
      .header('x-shiviz-parser', shivizParser)
      .send(toShiViz(eventsOf(history)))
  })
}

/** The switches of the demo: they break the network of the caller's own workspace, in this process, and mend it. */
export function addSwitches(server: FastifyInstance, { base, workspaces, regions, network }: Parts): void {
  const onRequest = requireKey(workspaces, 'chat')

  const region = { onRequest, config: { declaration: document.setRegionLink } }
  server.put<OfRegion>('/api/chat/regions/:region/link', region, async (request, reply) => {
    const { region: name } = request.params
    if (!isRegion(name)) return reply.callNotFound()
    const parsed = parseRegionLink(request.body)
    if ('errors' in parsed) return sendInvalid(reply, parsed.errors)
    const { workspaceId } = callerOf(request)
    network.setRegion(workspaceId, name, parsed.link)
    return viewOf({ regions, network }, workspaceId, name)
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

function viewOf({ regions, network }: Pick<Parts, 'regions' | 'network'>, workspaceId: string, region: RegionName) {
  return { region, ...network.regionOf(workspaceId, region), clients: regions.regionOf(region).sessions }
}

function askedOf(
  request: FastifyRequest<OfRoom>,
): { readonly room: string; readonly region: RegionName } | { readonly errors: readonly FieldError[] } {
  const { room } = request.params
  const { region = regionNames[0] } = request.query
  const errors: FieldError[] = []
  if (!isRoom(room)) errors.push({ field: 'room', detail: 'is not the name of a room' })
  if (!isRegion(region)) errors.push({ field: 'region', detail: `is none of ${regionNames.join(', ')}` })
  if (errors.length > 0 || !isRegion(region)) return { errors }
  return { room: roomOf(callerOf(request).workspaceId, room), region }
}

/** For a page on the machine of whoever tries this: the demo key, without asking for it. */
export function addDemo(server: FastifyInstance, demo: { readonly apiKey: string; readonly switches: boolean }): void {
  server.get('/chat/demo', { config: { declaration: document.readDemo } }, async (request, reply) => {
    if (!isLocal(request)) return reply.callNotFound()
    return reply.header('cache-control', 'no-store').send(demo)
  })
}

const LOCAL_NAMES = new Set(['localhost', '127.0.0.1', '[::1]'])
const LOCAL_ADDRESSES = /^(127(\.\d{1,3}){3}|::1|::ffff:127(\.\d{1,3}){3})$/

/** The name too: a page of somebody else whose name was made to lead here would come under its own. */
function isLocal({ headers, hostname, ip }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  const ours = site === undefined || site === 'same-origin' || site === 'none'
  return ours && LOCAL_NAMES.has(hostname) && LOCAL_ADDRESSES.test(ip)
}
