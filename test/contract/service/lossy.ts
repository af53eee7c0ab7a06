import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A network in front of a server that carries every request, and loses every answer. */
export interface LossyNetwork extends AsyncDisposable {
  readonly url: string
  /** How many answers were lost. */
  readonly lost: number
}

export async function loseAnswersOf(url: string): Promise<LossyNetwork> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let lost = 0
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    }
    client.pipe(upstream)
    // The server answers only after its outcome is recorded; that response is dropped here.
    upstream.once('data', () => {
      lost += 1
      client.destroy()
      upstream.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get lost() {
      return lost
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
