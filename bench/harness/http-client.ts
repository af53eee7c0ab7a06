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

export interface HttpClientOptions {
  /**
   * Never sleeps while a request is open. The kernel charges the waking of a sleeping client to the server that
   * writes to it, so that a route of a few microseconds measures mostly that. Takes a core. @default false
   */
  readonly polls?: boolean
}

/**
 * Keep-alive connections, one request on each at a time, and as little work as possible: a client library takes longer
 * for a request than a server for its answer, and it would be the client that is measured. Bodies are ASCII.
 */
export function createHttpClient(
  at: number | { readonly socket: string },
  { polls = false }: HttpClientOptions = {},
): HttpClient {
  const host = typeof at === 'number' ? `127.0.0.1:${at}` : 'localhost'
  const place = typeof at === 'number' ? { host: '127.0.0.1', port: at, noDelay: true } : { path: at.socket }
  const all: Connection[] = []
  const free: Connection[] = []
  let asked = 0
  let isPolling = false
  async function ask(request: string): Promise<HttpAnswer> {
    const connection = free.pop() ?? open()
    asked++
    if (polls && !isPolling) poll()
    try {
      const answer = await connection.ask(request)
      free.push(connection)
      return answer
    } finally {
      asked--
    }
  }
  /** An event loop with something to do at once asks the kernel for sockets without waiting for them. */
  function poll(): void {
    isPolling = asked > 0
    if (isPolling) setImmediate(poll)
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
  const rest = text.slice(end + HEAD_END.length)
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  const body = length === undefined ? unchunked(head, rest) : rest.length < Number(length) ? null : rest
  return body === null ? null : { status: Number(head.slice(9, 12)), head, body }
}

/** Null as long as the last piece, which is empty, has not come. */
function unchunked(head: string, text: string): string | null {
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) throw new Error(`An answer without a length:\n${head}`)
  let body = ''
  for (let at = 0; ; ) {
    const line = text.indexOf('\r\n', at)
    if (line < 0) return null
    const length = Number.parseInt(text.slice(at, line), 16)
    const begin = line + 2
    if (text.length < begin + length + 2) return null
    if (length === 0) return body
    body += text.slice(begin, begin + length)
    at = begin + length + 2
  }
}
