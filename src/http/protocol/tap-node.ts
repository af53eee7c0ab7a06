import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { headersOf, sendAnswer } from './capture-node.ts'
import type { Collector } from './collector.ts'
import { createCollector } from './collector.ts'
import type { Answer, Captured, HeaderList } from './exchange.ts'
import { IDLE_MS } from './passage.ts'
import type { Running } from './running.ts'

/** What an adapter may say to an answer that is being listened to. */
export interface Tap {
  /** The handler threw. What its framework answers for it follows, or has begun already. */
  threw(error: unknown): void
  /** What the handler has done of its answer: what it wrote is on its way, and cannot be taken back. */
  readonly phase: 'silent' | 'begun' | 'ended'
}

export interface TapOptions {
  readonly maxBytes: number
  readonly buffered: boolean
  readonly running: Running<unknown>
  /** How long a handler whose client left may pause in the middle of its answer; half a minute, when left out. */
  readonly idleMs?: number
}

type Chunk = string | Uint8Array
type Callback = (error?: Error | null) => void

/** Members that are ours while an answer is tapped, as its class has them. */
interface Untapped {
  write(chunk: Uint8Array, done?: Callback): boolean
  end(chunk?: Uint8Array, done?: Callback): ServerResponse
  writeHead(status: number, reason?: string): ServerResponse
  flushHeaders(): void
  destroy(error?: Error): ServerResponse
  emit(event: string, ...rest: unknown[]): boolean
}

interface State {
  readonly response: ServerResponse
  readonly options: TapOptions
  readonly own: Untapped
  readonly collector: Collector
  /** Status and headers as the handler gave them, before any layer below us, such as compression, changes them. */
  head: { readonly status: number; readonly headers: HeaderList } | null
  /** What was set before the handler ran, and stays when its answer is replaced. */
  readonly before: OutgoingHttpHeaders
  /** Of a buffered answer: everything, until its transaction has committed. */
  readonly held: Uint8Array[]
  /** The handler has ended its response, or it will never be ended. */
  ended: boolean
  /** The outcome is recorded: everything passes. */
  passing: boolean
  /** The client hung up, and the handler does not know: it continues to the end of its response. */
  gone: boolean
  /** The handler waits for a drain that a closed socket never announces. */
  thirsty: boolean
  /** Runs while the client is gone and the answer is not at its end. */
  idle: NodeJS.Timeout | null
  thrown: unknown
}

/**
 * Listens to an answer while it is written. Bytes pass on at once, the end is held back until the outcome is recorded; a
 * buffered answer passes on nothing before that. A client that hangs up is hidden from the handler, so that it writes
 * its answer to the end and a retry gets all of it.
 */
export function tapResponse(response: ServerResponse, options: TapOptions): Tap {
  const state: State = {
    response,
    options,
    own: untapped(response),
    collector: createCollector(options.maxBytes),
    head: null,
    before: response.getHeaders(),
    held: [],
    ended: false,
    passing: false,
    gone: false,
    thirsty: false,
    idle: null,
    thrown: undefined,
  }
  tapHead(state)
  tapBody(state)
  tapClose(state)
  return {
    threw: (error) => void (state.thrown = error),
    get phase() {
      if (state.ended) return 'ended'
      return state.head === null ? 'silent' : 'begun'
    },
  }
}

function untapped(response: ServerResponse): Untapped {
  return {
    write: response.write.bind(response) as Untapped['write'],
    end: response.end.bind(response) as Untapped['end'],
    writeHead: response.writeHead.bind(response) as Untapped['writeHead'],
    flushHeaders: response.flushHeaders.bind(response),
    destroy: response.destroy.bind(response),
    emit: response.emit.bind(response) as Untapped['emit'],
  }
}

/** From the first byte on the head is what it is. */
function takeHead(state: State): NonNullable<State['head']> {
  const { response } = state
  state.head ??= { status: response.statusCode, headers: headersOf(response) }
  return state.head
}

/** After its head a plain answer takes no more headers. Ours behaves alike, although it is still here. */
function isSealed({ passing, ended, head, options }: State): boolean {
  return !passing && (ended || (options.buffered && head !== null))
}

function headersSent(): Error {
  return Object.assign(new Error('Cannot set headers after they are sent to the client'), {
    code: 'ERR_HTTP_HEADERS_SENT',
  })
}

function tapHead(state: State): void {
  const { response, own, options } = state
  response.writeHead = ((status: number, ...rest: unknown[]) => {
    if (state.passing) return own.writeHead(status, ...(rest as [string]))
    if (isSealed(state)) throw headersSent()
    const [reason] = rest
    response.statusCode = status
    if (typeof reason === 'string') response.statusMessage = reason
    // Headers given here would pass by `getHeaders`, and so by the record.
    setAll(response, rest.at(-1))
    takeHead(state)
    return options.buffered || state.gone ? response : own.writeHead(status)
  }) as typeof response.writeHead

  response.flushHeaders = () => {
    if (!state.passing) takeHead(state)
    if (state.passing || !(options.buffered || state.gone)) own.flushHeaders()
  }

  for (const name of ['setHeader', 'appendHeader', 'removeHeader', 'setHeaders'] as const) {
    // HTTP/2 does not have all of them.
    if (typeof response[name] !== 'function') continue
    const untouched = response[name].bind(response) as (...args: unknown[]) => unknown
    Object.assign(response, {
      [name]: (...args: unknown[]) => {
        if (isSealed(state)) throw headersSent()
        return untouched(...args)
      },
    })
  }
  shadow(response, 'headersSent', () => isSealed(state) || null)
  shadow(response, 'writableEnded', () => (state.ended && !state.passing) || null)
}

/** A property that says something of its own as long as it has something to say. */
function shadow(response: ServerResponse, name: string, own: () => boolean | null): void {
  const prototype = Object.getPrototypeOf(response) as object
  Object.defineProperty(response, name, {
    configurable: true,
    get: () => own() ?? (Reflect.get(prototype, name, response) as unknown),
  })
}

function tapBody(state: State): void {
  const { response, own, options } = state
  response.write = ((chunk: Chunk, encoding?: BufferEncoding | Callback, done?: Callback) => {
    const after = typeof encoding === 'function' ? encoding : done
    if (state.passing || !isChunk(chunk)) return own.write(chunk as Uint8Array, after)
    if (state.ended) {
      if (after !== undefined) process.nextTick(after, new Error('write after end'))
      return false
    }
    takeHead(state)
    state.idle?.refresh()
    const bytes = take(state, chunk, encoding)
    if (options.buffered) state.held.push(bytes)
    if (!options.buffered && !state.gone) {
      const flows = own.write(bytes, after)
      state.thirsty = !flows
      return flows
    }
    if (after !== undefined) process.nextTick(after)
    return true
  }) as typeof response.write

  response.end = ((chunk?: Chunk | Callback | null, encoding?: BufferEncoding | Callback, done?: Callback) => {
    const after = [chunk, encoding, done].find((each) => typeof each === 'function')
    if (state.passing) return own.end(isChunk(chunk) ? bytesOf(chunk, encoding) : undefined, after as Callback)
    if (state.ended) return response
    const last = isChunk(chunk) ? take(state, chunk, encoding) : null
    takeHead(state)
    finish(state, state.collector.body(), last, after as Callback | undefined)
    return response
  }) as typeof response.end
}

function isChunk(chunk: unknown): chunk is Chunk {
  return typeof chunk === 'string' || chunk instanceof Uint8Array
}

function bytesOf(chunk: Chunk, encoding: unknown): Uint8Array {
  if (typeof chunk !== 'string') return chunk
  return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
}

function take({ response, collector }: State, chunk: Chunk, encoding: unknown): Uint8Array {
  // The application may reuse its buffer as soon as we return.
  const bytes = typeof chunk === 'string' ? bytesOf(chunk, encoding) : Uint8Array.prototype.slice.call(chunk)
  // What is written to the answer of a HEAD is never sent.
  if (response.req.method !== 'HEAD') collector.add(bytes)
  return bytes
}

function finish(state: State, body: Captured['body'], last: Uint8Array | null, after: Callback | undefined): void {
  const { running } = state.options
  const head = takeHead(state)
  state.ended = true
  if (state.idle !== null) clearTimeout(state.idle)
  const recorded = running.finish({ ...head, body }, state.thrown)
  if (recorded instanceof Promise) void recorded.then((instead) => release(state, head.status, last, instead, after))
  else release(state, head.status, last, recorded, after)
}

/** The outcome is recorded: what was held back leaves, or what has to be said in its place. */
function release(
  state: State,
  status: number,
  last: Uint8Array | null,
  instead: Answer | null,
  after: Callback | undefined,
): void {
  const { response, own, held, options } = state
  state.passing = true
  if (state.gone) {
    if (after !== undefined) process.nextTick(after)
    return reveal(state)
  }
  if (instead !== null && options.buffered) {
    for (const name of response.getHeaderNames()) response.removeHeader(name)
    setAll(response, state.before)
    response.statusMessage = ''
    return sendAnswer(response, instead)
  }
  // A status that was set after the end does not belong to this response.
  if (!response.headersSent) response.statusCode = status
  const rest = last === null ? held : [...held, last]
  const [only] = rest
  own.end(rest.length <= 1 ? only : Buffer.concat(rest), after)
}

function tapClose(state: State): void {
  const { response, own, options } = state
  const { socket } = response
  const { running } = options
  // A client leaves with an end or an error of the connection; without either this process closed it.
  const clientLeft = () => socket === null || socket.readableEnded || socket.errored !== null

  response.emit = ((event: string, ...rest: unknown[]) => {
    if (event !== 'close' || state.ended) return own.emit(event, ...rest)
    if (!clientLeft()) {
      cut(state, new Error('The answer was cut in the middle.'))
      return own.emit(event, ...rest)
    }
    hideLeaving(state)
    return true
  }) as typeof response.emit
  if (response.closed) hideLeaving(state)

  response.destroy = (error) => {
    if (!state.ended) {
      // A handler that saw its client leave did answer; one that destroys an awaited response did not.
      if (state.gone && state.head !== null) abandoned(state)
      else cut(state, error ?? new Error('The handler destroyed its answer.'))
    }
    return own.destroy(error)
  }

  // Past its lease nothing can be recorded, so the handler need not write any more.
  running.context.signal.addEventListener('abort', () => {
    if (state.gone && !state.ended) cut(state, new Error('The lease ended.'))
  })
}

/** The handler does not notice: it continues to the end of its response, which a retry will ask for. */
function hideLeaving(state: State): void {
  const { response, own, options } = state
  state.gone = true
  Object.assign(response, { destroyed: false, _closed: false })
  // Before its answer has begun a handler may take as long as it wants; the lease bounds it.
  if (state.head !== null) state.idle = setTimeout(() => abandoned(state), options.idleMs ?? IDLE_MS).unref()
  if (state.thirsty) own.emit('drain')
}

/** The client left, and the handler stopped: its status is known, the rest of its response is not. */
function abandoned(state: State): void {
  if (!state.ended) finish(state, { bytes: null, sha256: null }, null, undefined)
}

function cut(state: State, error: unknown): void {
  state.ended = true
  state.passing = true
  void state.options.running.fail(state.thrown ?? error)
  if (state.gone) reveal(state)
}

/** Now the handler may know that its client is gone. */
function reveal({ response, own }: State): void {
  Object.assign(response, { destroyed: true, _closed: true })
  own.emit('close')
}

function setAll(response: ServerResponse, headers: unknown): void {
  if (typeof headers !== 'object' || headers === null) return
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers as OutgoingHttpHeaders)) {
      if (value !== undefined) response.setHeader(name, value)
    }
    return
  }
  // A flat list of names and values, in which a name may come again.
  const flat = headers as string[]
  for (let at = 0; at + 1 < flat.length; at += 2) response.removeHeader(String(flat[at]))
  for (let at = 0; at + 1 < flat.length; at += 2) response.appendHeader(String(flat[at]), flat[at + 1] ?? '')
}
