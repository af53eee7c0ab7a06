import type { ClientRequest, ServerResponse } from 'node:http'

/** Up to here, making a text of a body costs less than writing a second piece. */
const ONE_PIECE_BYTES = 16_384

/** Ends a message. Node writes a text together with its head, but bytes behind it; as Latin-1 a text is any bytes. */
export function endInOnePiece(message: ClientRequest | ServerResponse, body: Uint8Array): void {
  if (body.length === 0) message.end()
  else if (body.length > ONE_PIECE_BYTES) message.end(body)
  else message.end(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'), 'latin1')
}
