import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { open, unlink } from 'node:fs/promises'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Hold } from '../front/bytes.ts'
import { createPieces } from '../front/pieces.ts'
import type { IncomingBody } from '../protocol/exchange.ts'
import { bodyCut, bodyTooLarge } from '../protocol/exchange.ts'
import { gatewayLimits } from './limits.ts'
import { endInOnePiece } from './one-piece.ts'

/** The body of one request, read whole before anything of it is sent on: in memory, or past a size in a file. */
export interface Spool {
  /** All of it, for its fingerprint. Rejects when it is too large, too slow or cut: then nothing was forwarded. */
  body(): Promise<IncomingBody>
  /** Whether the body was read: then the client's own stream is empty. */
  readonly taken: boolean
  /** Known once `body` was awaited. */
  readonly length: number
  /** Sends it on, as often as it is asked to. */
  sendTo(request: ClientRequest): void
  /** The file goes; what is sent must have been sent. */
  discard(): void
}

/** The body took longer than it may. */
export class SlowBody extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SlowBody'
  }
}

/** There is no room for the rest of the body: in memory, or in temporary files. */
export class SpoolFull extends Error {
  constructor() {
    super('Too many bodies are on their way at once.')
    this.name = 'SpoolFull'
  }
}

/** What the bodies of all requests share. */
export interface SpoolRoom {
  readonly memory: Hold
  readonly disk: Hold
  readonly turn: Turn
}

/** A large body is looked at whole, but only one of them at a time: memory is bounded by the largest. */
export interface Turn {
  /** False where there is none in time. */
  take(): Promise<boolean>
  /** Once the reader of the body has begun to look at it. */
  give(): void
}

export interface SpoolOptions {
  readonly maxBytes: number
  readonly bodyMs: number
  /** Without one there is room for no body at all. */
  readonly room?: SpoolRoom
}

const noRoom: Hold = { cover: () => false, release() {} }
const noTurn: Turn = { take: () => Promise.resolve(false), give() {} }
/** Of a request without a body, which needs none. */
export const NO_ROOM: SpoolRoom = { memory: noRoom, disk: noRoom, turn: noTurn }

const NOTHING = Buffer.alloc(0)

export function createSpool(message: IncomingMessage, options: SpoolOptions): Spool {
  const { room = NO_ROOM } = options
  let reading: Promise<Kept> | null = null
  let kept: Kept = { kind: 'memory', bytes: NOTHING }

  async function read(): Promise<IncomingBody> {
    reading ??= readWhole(message, options)
    kept = await reading
    return { bytes: kept.kind === 'memory' ? kept.bytes : await oneAtATime(kept, room.turn) }
  }

  return {
    body: read,
    get taken() {
      return reading !== null
    },
    get length() {
      return kept.kind === 'memory' ? kept.bytes.length : kept.length
    },
    sendTo(request) {
      if (kept.kind === 'memory') return endInOnePiece(request, kept.bytes)
      const stream = createReadStream('', { fd: kept.file, start: 0, autoClose: false })
      // Any failure is reported as an error of the request.
      pipeline(stream, request).catch((error: unknown) => request.destroy(error as Error))
    },
    discard() {
      void reading
        ?.then(
          (each) => (each.kind === 'file' ? each.close() : undefined),
          () => undefined,
        )
        .catch(() => {})
    },
  }
}

type Kept =
  | { readonly kind: 'memory'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'file'
      readonly file: FileHandle
      readonly length: number
      /** Frees its space. Idempotent. */
      close(): Promise<void>
    }

async function oneAtATime({ file, length }: Extract<Kept, { readonly kind: 'file' }>, turn: Turn): Promise<Uint8Array> {
  if (!(await turn.take())) throw new SpoolFull()
  try {
    const bytes = Buffer.allocUnsafe(length)
    for (let at = 0; at < length; ) {
      const { bytesRead } = await file.read(bytes, at, length - at, at)
      if (bytesRead === 0) throw new Error('A temporary file is shorter than what was written to it.')
      at += bytesRead
    }
    return bytes
  } finally {
    // The caller has begun to compute the fingerprint by then: that happens as soon as this promise is resolved.
    setImmediate(() => turn.give())
  }
}

/** By events, because a loop that ends early destroys the request, and the client would never get the reason. */
function readWhole(message: IncomingMessage, options: SpoolOptions): Promise<Kept> {
  const { maxBytes, bodyMs, room = NO_ROOM } = options
  const declared = Number(message.headers['content-length'] ?? 0)
  if (declared === 0 && message.headers['transfer-encoding'] === undefined) {
    return Promise.resolve({ kind: 'memory', bytes: NOTHING })
  }
  const { promise, resolve, reject } = Promise.withResolvers<Kept>()
  const pieces = createPieces()
  let bytes = 0
  let file: Promise<FileHandle> | null = null
  let writing: Promise<void> = Promise.resolve()

  /** Its room is free again when the file is gone. */
  async function close(): Promise<void> {
    await (await file)?.close()
    room.disk.release()
  }

  const timer = setTimeout(() => give(new SlowBody(`The body did not arrive within ${bodyMs} ms.`)), bodyMs)
  function stop(): void {
    clearTimeout(timer)
    message.off('data', take).off('end', whole).off('error', cut).off('close', cut)
    message.on('error', () => {})
  }
  function give(error: unknown): void {
    stop()
    // The rest is read and dropped while the answer is on its way: a reset would overtake it.
    message.resume()
    void writing
      .catch(() => {})
      .then(close)
      .catch(() => {})
    reject(error)
  }
  function take(chunk: Buffer): void {
    bytes += chunk.length
    if (bytes > maxBytes) return give(bodyTooLarge(maxBytes))
    pieces.add(chunk)
    if (bytes <= gatewayLimits.memoryBodyBytes) {
      if (!room.memory.cover(bytes)) give(new SpoolFull())
      return
    }
    if (!room.disk.cover(bytes)) return give(new SpoolFull())
    const due = pieces.take()
    const handle = (file ??= openUnnamed())
    message.pause()
    writing = writing.then(async () => {
      await (await handle).writev(due)
      room.memory.release()
      message.resume()
    })
    writing.catch(give)
  }
  function whole(): void {
    stop()
    if (file === null) return resolve({ kind: 'memory', bytes: pieces.takeWhole() })
    const handle = file
    writing.then(async () => resolve({ kind: 'file', file: await handle, length: bytes, close })).catch(reject)
  }
  const cut = (error?: unknown) => give(bodyCut(error))

  if (declared > maxBytes) give(bodyTooLarge(maxBytes))
  else if (message.destroyed && !message.complete) cut()
  else message.on('data', take).on('end', whole).on('error', cut).on('close', cut)
  return promise
}

const PRIVATE = 0o600

/** A file that has lost its name again: it ends with the process. */
async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `onceonly-${randomUUID()}`)
  const file = await open(path, 'wx+', PRIVATE)
  await unlink(path)
  return file
}
