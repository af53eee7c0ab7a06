import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, RequestPayload } from 'fastify'
import { createPieces } from 'onceonly/http/limits'

/** A body up to here that says how long it is comes in few pieces: what one connection hands over at a time. */
const FEW_PIECES_BYTES = 64 * 1_024

/**
 * A reader of a body keeps its pieces as they come, and a client chooses how small they are: a million of one byte take some
 * hundred megabytes. So they are put together before any reader keeps them.
 */
export function gatherBodies(server: FastifyInstance): void {
  server.addHook('preParsing', (request, _reply, payload, done) => {
    const { 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers
    done(null, coding !== undefined || Number(length) > FEW_PIECES_BYTES ? inBlocks(payload) : payload)
  })
}

/** Of a body that is refused in the middle so much is still read, and dropped: a client that writes on learns why. */
const LEFT_BYTES_MOST = 16 * 1_024 * 1_024
/** And for so long. */
const LEFT_MS_MOST = 5_000

/** Begins when it is read: of a request that is refused by its head, Node drops the body itself. */
function inBlocks(source: RequestPayload): Readable {
  const pieces = createPieces()
  let begun = false
  /** Null until the reader has left. */
  let leftBytes: number | null = null

  function begin(): void {
    begun = true
    source
      .on('data', (piece: Buffer) => {
        if (leftBytes !== null) return drop(piece)
        pieces.add(piece)
        if (pieces.bytes >= FEW_PIECES_BYTES && !blocks.push(pieces.takeWhole())) source.pause()
      })
      .once('end', () => {
        if (leftBytes !== null) return
        if (pieces.bytes > 0) blocks.push(pieces.takeWhole())
        blocks.push(null)
      })
      .once('error', (error: Error) => void blocks.destroy(error))
  }

  function drop(piece: Buffer): void {
    leftBytes = (leftBytes ?? 0) + piece.length
    if (leftBytes > LEFT_BYTES_MOST) end()
  }

  function end(): void {
    if ((source as IncomingMessage).complete !== true) (source as IncomingMessage).destroy()
  }

  const blocks = new Readable({
    read() {
      if (!begun) begin()
      source.resume()
    },
    destroy(error, done) {
      // A reader that leaves says so by an error as well. The client still writes: it would not see its answer if nothing read on.
      if (!source.destroyed && (source as IncomingMessage).complete !== true) {
        leftBytes = 0
        const timer = setTimeout(end, LEFT_MS_MOST).unref()
        source.once('close', () => clearTimeout(timer))
        source.resume()
      }
      done(error)
    },
  })
  return blocks
}
