import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import type { TestContext } from 'node:test'

/** A service that writes its responses byte by byte, and breaks off where the test says. */
export interface Wire {
  readonly url: string
  /** Connections on which at least the first line of a request arrived. */
  readonly requests: number
  /** Connections that were ever made. */
  readonly connections: number
}

export interface WireAct {
  /** Bytes of the request that are read before anything else happens; all that belongs to it, when left out. */
  readonly readBytes?: number
  /** What is written before the connection is broken, or left open. */
  readonly write?: Buffer
  readonly finally: 'reset' | 'end' | 'stay'
}

/** @param act what is done with the request of this number, from one */
export async function openWire(context: TestContext, act: (request: number) => WireAct): Promise<Wire> {
  let requests = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    let received = Buffer.alloc(0)
    let mine: WireAct | null = null
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      if (mine === null) {
        requests++
        mine = act(requests)
      }
      if (received.length < (mine.readBytes ?? wholeLength(received))) return
      const { write, finally: end } = mine
      received = Buffer.alloc(0)
      mine = end === 'stay' ? null : { readBytes: Number.POSITIVE_INFINITY, finally: end }
      const leave = () => {
        if (end === 'reset') socket.resetAndDestroy()
        else if (end === 'end') socket.end()
      }
      if (write === undefined || write.length === 0) leave()
      else socket.write(write, leave)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return requests
    },
    get connections() {
      return sockets.size
    },
  }
}

function wholeLength(received: Buffer): number {
  const head = received.indexOf('\r\n\r\n')
  if (head < 0) return Number.POSITIVE_INFINITY
  const length = /^content-length: *(\d+)/im.exec(received.subarray(0, head).toString('latin1'))?.[1] ?? '0'
  return head + 4 + Number(length)
}

/** Sends bytes as they are, and gives all that came back until the other side closed. */
export async function raw(
  port: number,
  bytes: string | Buffer,
  options: { readonly cutAfter?: number } = {},
): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => void chunks.push(chunk))
  const all = Buffer.from(bytes as string)
  socket.write(all.subarray(0, options.cutAfter ?? all.length), () => {
    if (options.cutAfter !== undefined) socket.destroy()
  })
  await once(socket, 'close')
  return Buffer.concat(chunks).toString('latin1')
}
