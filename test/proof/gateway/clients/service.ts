import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from '../../../support/gateway/world.ts'
import { CELL } from './command.ts'

/** What happens to the first try of a command. */
export const faults = [
  'lost response',
  'reset before status',
  'cut body',
  '409',
  '429',
  '500',
  '503 with Retry-After',
  '503',
  'slow',
] as const

export type Fault = (typeof faults)[number]

/** What a service knows of a command. */
export interface Seen {
  /** How often it was done. */
  effects: number
  /** Whether a whole answer was written that says so. */
  answered: boolean
  requests: number
}

/**
 * `plain`: it knows no keys, and a 500 or 503 comes after the effect, as with a service that dies in the middle.
 * `honours`: it answers a repeated key from its own record, and with a 500 or 503 nothing has happened.
 */
export type Manners = 'plain' | 'honours'

export interface FaultyService {
  readonly url: string
  seen(cell: string): Seen
}

export interface FaultyOptions {
  readonly manners: Manners
  readonly faultOf: (cell: string) => Fault
  /** Settles when a slow answer may come: its client has given its first try up. */
  readonly untilImpatient: (cell: string) => Promise<void>
}

export async function openFaulty(context: TestContext, options: FaultyOptions): Promise<FaultyService> {
  const { manners, faultOf, untilImpatient } = options
  const all = new Map<string, Seen>()
  /** What was done under which key, where keys are honoured. */
  const done = new Map<string, string>()

  function seenOf(cell: string): Seen {
    const seen = all.get(cell) ?? { effects: 0, answered: false, requests: 0 }
    all.set(cell, seen)
    return seen
  }

  /** The effect, and the id for its response. */
  function act(cell: string, request: IncomingMessage): string {
    const key = String(request.headers['idempotency-key'] ?? '')
    const known = manners === 'honours' ? done.get(key) : undefined
    if (known !== undefined) return known
    const id = `made-${cell}-${++seenOf(cell).effects}`
    done.set(key, id)
    return id
  }

  function succeed(cell: string, id: string, response: ServerResponse): void {
    seenOf(cell).answered = true
    response.writeHead(200, headersFor(id)).end(bodyFor(id))
  }

  async function answer(cell: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seen = seenOf(cell)
    const fault = faultOf(cell)
    if (++seen.requests > 1) return succeed(cell, act(cell, request), response)
    switch (fault) {
      case 'lost response':
        // It is lost on the other side of the gateway.
        return succeed(cell, act(cell, request), response)
      case 'slow': {
        const id = act(cell, request)
        await untilImpatient(cell)
        return succeed(cell, id, response)
      }
      case 'reset before status':
        act(cell, request)
        return void request.socket.resetAndDestroy()
      case 'cut body': {
        const id = act(cell, request)
        const body = bodyFor(id)
        response.writeHead(200, { ...headersFor(id), 'content-length': body.length })
        return void response.write(body.slice(0, body.length / 2), () => request.socket.destroy())
      }
      case '500':
      case '503':
        if (manners === 'plain') act(cell, request)
        return refuse(response, Number(fault))
      case '503 with Retry-After':
        return refuse(response, 503, { 'retry-after': '1' })
      case '409':
      case '429':
        return refuse(response, Number(fault))
    }
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const [cell] = CELL.exec(`${request.url} ${request.headers['idempotency-key']}`) ?? []
      if (cell === undefined) return refuse(response, 404)
      void answer(cell, request, response)
    })
  })
  const port = await listening(context, server)
  return { url: `http://127.0.0.1:${port}`, seen: seenOf }
}

/** Fields that one SDK or another requires. */
function bodyFor(id: string): string {
  return JSON.stringify({ id, object: 'customer', resource: 'payment', timestamp: '2026-11-16T00:00:00Z', _links: {} })
}

function headersFor(id: string): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', etag: `"${id}"` }
}

function refuse(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  const body = { error: { message: `It answers ${status}.`, code: 'fault' }, status, title: 'fault' }
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
