import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'

/**
 * Passes the body of one message on as the body of another; the slower side sets the pace. Unlike `pipe`, it frees every
 * piece as soon as it has left: V8 collects buffers only after 64 MiB of them, and a large body would take all of that.
 *
 * @returns ends it: what comes from now on is read and dropped
 */
export function flow(from: IncomingMessage, to: ClientRequest | ServerResponse): () => void {
  const pass = (piece: Buffer) => {
    // What could not be written is left to V8: the socket may still hold it.
    const left = (error?: Error | null) => {
      if (!(error instanceof Error)) free(piece)
    }
    if (!to.write(piece, left)) from.pause()
  }
  const more = () => void from.resume()
  const end = () => void to.end()
  const stop = () => {
    from.off('data', pass).off('end', end).resume()
    to.off('drain', more)
  }
  from.on('data', pass).once('end', end)
  // A closed side takes nothing more, and must not keep the other side from ending.
  to.on('drain', more).once('close', stop)
  return stop
}

/** The same for an upstream's response, whose connection hands its parser pieces that are not kept either. */
export function flowBack(answer: IncomingMessage, response: ServerResponse): void {
  const { socket } = answer
  let parsed: Buffer | null = null
  const read = (piece: Buffer) => {
    // By the time of the next piece the parser has copied what it needed of this one.
    if (parsed !== null) free(parsed)
    parsed = piece
  }
  socket.on('data', read)
  answer.once('close', () => socket.off('data', read))
  flow(answer, response)
}

/**
 * Only what has memory of its own, as both parser and connections make it; a part of something larger is left to V8.
 */
function free({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
