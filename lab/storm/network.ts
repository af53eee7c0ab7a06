import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../../src/testing/random.ts'

/** What the network does with a connection; all but the first cost an answer. */
export type Loss = 'carried' | 'answer_lost' | 'answer_torn' | 'cut' | 'refused'

/** An address that stays when the server behind it is killed and another one takes its place. */
export interface Front {
  readonly url: string
  /** Null while there is no server. */
  lead(url: string | null): void
}

export interface Network extends AsyncDisposable {
  /** One per server, for requests. */
  readonly requests: readonly Front[]
  /** One per server, for WebSockets, which live for a while and are then cut. */
  readonly sockets: readonly Front[]
  readonly losses: Readonly<Record<Loss, number>>
  /** From now on everything is carried. */
  calm(): void
}

/** Of a hundred connections. */
const SHARES: Readonly<Record<Loss, number>> = { carried: 84, answer_lost: 7, answer_torn: 3, cut: 4, refused: 2 }
const CUT_MS_MOST = 400
const SOCKET_MS = { least: 3_000, most: 40_000 }

export async function openNetwork(servers: number, random: Random): Promise<Network> {
  const losses: Record<Loss, number> = { carried: 0, answer_lost: 0, answer_torn: 0, cut: 0, refused: 0 }
  const open = new Set<Socket>()
  const listening: Server[] = []
  let stormy = true

  function lossOf(): Loss {
    let at = stormy ? random.next() * 100 : 0
    const [loss] = (Object.entries(SHARES) as [Loss, number][]).find(([, share]) => (at -= share) < 0) ?? ['carried']
    losses[loss] += 1
    return loss
  }

  function endLater(sockets: readonly Socket[], ms: number): void {
    const timer = setTimeout(() => {
      if (stormy) for (const socket of sockets) socket.destroy()
    }, ms)
    for (const socket of sockets) socket.once('close', () => clearTimeout(timer))
  }

  function carryRequest(client: Socket, upstream: Socket): void {
    const loss = lossOf()
    if (loss === 'cut') endLater([client, upstream], random.below(CUT_MS_MOST))
    if (loss === 'refused') {
      client.destroy()
      upstream.destroy()
      return
    }
    client.pipe(upstream)
    if (loss === 'carried' || loss === 'cut') {
      upstream.pipe(client)
      return
    }
    // The server answers only when its outcome is recorded; the client reads nothing of it, or half.
    upstream.once('data', (chunk: Buffer) => {
      if (loss === 'answer_torn') client.write(chunk.subarray(0, chunk.length >> 1), () => client.destroy())
      else client.destroy()
      upstream.destroy()
    })
  }

  function carrySocket(client: Socket, upstream: Socket): void {
    client.pipe(upstream).pipe(client)
    endLater([client, upstream], SOCKET_MS.least + random.below(SOCKET_MS.most - SOCKET_MS.least))
  }

  async function front(carry: (client: Socket, upstream: Socket) => void): Promise<Front> {
    let behind: URL | null = null
    const server = createServer((client) => {
      client.on('error', () => {})
      if (behind === null) return client.destroy()
      const upstream = connect(Number(behind.port), behind.hostname)
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        open.add(socket)
        socket
          .on('error', () => {})
          .once('close', () => {
            open.delete(socket)
            other.destroySoon()
          })
      }
      carry(client, upstream)
      return undefined
    })
    listening.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      lead: (url) => void (behind = url === null ? null : new URL(url)),
    }
  }

  const each = Array.from({ length: servers })
  return {
    requests: await Promise.all(each.map(() => front(carryRequest))),
    sockets: await Promise.all(each.map(() => front(carrySocket))),
    losses,
    calm: () => void (stormy = false),
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await Promise.all(listening.map((server) => once(server.close(), 'close')))
    },
  }
}
