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

/** Begins when it is read: of a request that is refused by its head, Node drops the body itself. */
function inBlocks(source: RequestPayload): Readable {
  const pieces = createPieces()
  let begun = false

  function begin(): void {
    begun = true
    source
      .on('data', (piece: Buffer) => {
        pieces.add(piece)
        if (pieces.bytes >= FEW_PIECES_BYTES && !blocks.push(pieces.takeWhole())) source.pause()
      })
      .once('end', () => {
        if (pieces.bytes > 0) blocks.push(pieces.takeWhole())
        blocks.push(null)
      })
      .once('error', (error: Error) => void blocks.destroy(error))
  }

  const blocks = new Readable({
    read() {
      if (!begun) begin()
      source.resume()
    },
    destroy(error, done) {
      // As if the body itself had been left in the middle.
      if (error === null && (source as IncomingMessage).complete !== true) (source as IncomingMessage).destroy()
      done(error)
    },
  })
  return blocks
}
