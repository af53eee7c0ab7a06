import { connect, type Socket } from 'node:net'

/** An answer as far as a benchmark looks at it. */
export interface HttpAnswer {
  readonly status: number
  /** The status line and the headers, as they came. */
  readonly head: string
  readonly body: string
}

export interface HttpClient {
  get(path: string): Promise<HttpAnswer>
  post(path: string, headers: Readonly<Record<string, string>>, body: string): Promise<HttpAnswer>
  stop(): void
}

interface Connection {
  ask(request: string): Promise<HttpAnswer>
  end(): void
}

const HEAD_END = '\r\n\r\n'

/**
 * Keep-alive connections, one request on each at a time, and as little work as possible: a client library takes longer
 * for a request than a server for its answer, and it would be the client that is measured. Bodies are ASCII.
 */
export function createHttpClient(at: number | { readonly socket: string }): HttpClient {
  const host = typeof at === 'number' ? `127.0.0.1:${at}` : 'localhost'
  const place = typeof at === 'number' ? { host: '127.0.0.1', port: at, noDelay: true } : { path: at.socket }
  const all: Connection[] = []
  const free: Connection[] = []
  async function ask(request: string): Promise<HttpAnswer> {
    const connection = free.pop() ?? open()
    const answer = await connection.ask(request)
    free.push(connection)
    return answer
  }
  return {
    get: (path) => ask(`GET ${path} HTTP/1.1\r\nHost: ${host}${HEAD_END}`),
    post(path, headers, body) {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}Content-Length: ${body.length}`
      return ask(`${head}${HEAD_END}${body}`)
    },
    stop: () => all.forEach((connection) => connection.end()),
  }

  function open(): Connection {
    const connection = openConnection(connect(place))
    all.push(connection)
    return connection
  }
}

function openConnection(socket: Socket): Connection {
  let received = ''
  let waiting: PromiseWithResolvers<HttpAnswer> | null = null
  const fail = (error: Error) => waiting?.reject(error)
  socket.setEncoding('latin1')
  socket.on('error', fail).on('close', () => fail(new Error('The server closed a connection.')))
  socket.on('data', (chunk: string) => {
    received += chunk
    const answer = wholeAnswer(received)
    if (answer === null) return
    received = ''
    const asked = waiting
    waiting = null
    asked?.resolve(answer)
  })
  return {
    ask(request) {
      waiting = Promise.withResolvers()
      socket.write(request, 'latin1')
      return waiting.promise
    },
    end: () => socket.destroy(),
  }
}

function wholeAnswer(text: string): HttpAnswer | null {
  const end = text.indexOf(HEAD_END)
  if (end < 0) return null
  const head = text.slice(0, end)
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`An answer without a length:\n${head}`)
  const body = text.slice(end + HEAD_END.length)
  return body.length < Number(length) ? null : { status: Number(head.slice(9, 12)), head, body }
}
