import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SqlStore } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'
import type { Entry, MessageIdentity, StreamClient, StreamClientOptions } from 'onceonly/stream'
import { createStreamClient, createWebSocketTransport, identityText } from 'onceonly/stream'
import {
  createLocalExchange,
  createSocketServer,
  createSqlOrderLog,
  createSqlRoomLog,
  createStreamRegion,
  type SocketLink,
  type StreamRegion,
} from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'
import { createProxy, type Proxy } from '../../../tools/proxy/index.ts'

/** One region behind a network that fails on demand. */
export interface Node {
  readonly region: StreamRegion
  readonly proxy: Proxy
  /** Of every connection that was opened, in order. */
  readonly links: readonly SocketLink[]
}

/** Some regions in this process, with real WebSockets to them, on one SQLite store. */
export interface StreamWorld {
  readonly folder: string
  readonly store: SqlStore
  node(name: string): Node
  url(name: string): string
  client(options?: Partial<StreamClientOptions>): Promise<Participant>
  end(): Promise<void>
}

/** A client that records what it received. */
export interface Participant {
  readonly client: StreamClient
  readonly seen: Entry[]
  readonly order: string[]
  readonly renewed: string[]
  /** Sends, and waits until a region has it durably. */
  say(text: string, replyTo?: MessageIdentity): Promise<MessageIdentity>
}

export const ROOM = 'lobby'

/** Short, because a test waits for it; a real client takes longer. */
export const quick = { reconnectBaseMs: 20, reconnectCapMs: 200, orderEveryMs: 50, pullEveryMs: 200 }

export async function openWorld(names: readonly string[] = ['eu']): Promise<StreamWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-stream-'))
  const store = sqliteStore(join(folder, 'stream.db'))
  const exchange = createLocalExchange()
  const order = createSqlOrderLog({ store })
  const nodes = new Map<string, Node>()
  const ends: (() => Promise<unknown>)[] = []
  for (const name of names) {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const region = createStreamRegion({
      region: name,
      log: createSqlRoomLog({ store, region: name }),
      order,
      exchange: exchange.of(name),
      peers: names.filter((peer) => peer !== name),
      bounds: quick,
    })
    const links: SocketLink[] = []
    const sockets = createSocketServer({
      server,
      path: '/socket',
      WebSocketServer,
      admit: async (_request, token) =>
        token === 'wrong'
          ? { kind: 'refused', status: 401, reason: 'Unknown token.' }
          : { kind: 'admitted', who: null },
      begin(link) {
        links.push(link)
        return region.connect(link)
      },
    })
    const proxy = await createProxy({ targetPort: (server.address() as AddressInfo).port })
    nodes.set(name, { region, proxy, links })
    ends.push(async () => {
      await sockets.stop()
      await region.stop()
      await proxy.stop()
      server.close()
    })
  }
  const node = (name: string) => nodes.get(name) ?? failed(name)
  const url = (name: string) => `ws://127.0.0.1:${node(name).proxy.port}/socket`
  const clients: StreamClient[] = []

  return {
    folder,
    store,
    node,
    url,
    async client(options = {}) {
      const participant = await participate(url, { regions: names.slice(0, 1), ...options })
      clients.push(participant.client)
      return participant
    },
    async end() {
      for (const client of clients) await client.stop()
      for (const end of ends) await end()
      await store.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export async function participate(
  url: (region: string) => string,
  options: Partial<StreamClientOptions> & Pick<StreamClientOptions, 'regions'>,
): Promise<Participant> {
  const seen: Entry[] = []
  const order: string[] = []
  const renewed: string[] = []
  const client = await createStreamClient({
    room: ROOM,
    transport: createWebSocketTransport({ url }),
    mode: 'at-least-once',
    from: 'start',
    bounds: quick,
    onIdentity: (_identity, why) => renewed.push(why),
    ...options,
    receiver: {
      async message(entry) {
        await options.receiver?.message(entry)
        seen.push(entry)
      },
      ordered: (identity) => order.push(identityText(identity)),
    },
  })
  return {
    client,
    seen,
    order,
    renewed,
    async say(text, replyTo) {
      const sent = await client.send({ text }, replyTo === undefined ? {} : { replyTo })
      await sent.accepted
      return sent.identity
    },
  }
}

export function textsOf({ seen }: Pick<Participant, 'seen'>): readonly string[] {
  return seen.map(({ body }) => (body as { text: string }).text)
}

function failed(name: string): never {
  throw new Error(`There is no region ${name}`)
}
