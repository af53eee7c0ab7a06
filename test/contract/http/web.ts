import type { Act } from 'onceonly/testing'

/** A neutral act as a web-standard response. */
export function responseOf({ status = 200, headers = [], body, throws }: Act): Response {
  // oxlint-disable-next-line typescript/only-throw-error -- a verdict is no error, and is thrown all the same.
  if (throws !== undefined) throw throws
  const list = new Headers()
  for (const [name, value] of headers) list.append(name, value)
  const init = { status, headers: list }
  if (body === undefined) return new Response(null, init)
  if ('text' in body) return new Response(body.text, init)
  if ('json' in body) return Response.json(body.json, init)
  if ('bytes' in body) return new Response(Buffer.from(body.bytes), init)
  const source = 'stream' in body ? body.stream() : body.writes()
  return new Response(ReadableStream.from(source) as ReadableStream, init)
}
