import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import Fastify, { type FastifyRequest } from 'fastify'
import { gatherBodies } from './blocks.ts'

const HEAD = 'Host: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked'

interface Read {
  readonly pieces: number
  readonly body: string
}

async function countPieces(request: FastifyRequest): Promise<Read> {
  let pieces = 0
  let body = ''
  for await (const piece of request.body as AsyncIterable<Buffer>) {
    pieces++
    body += piece.toString('latin1')
  }
  return { pieces, body }
}

async function served(context: TestContext, onError = (_error: unknown): void => {}): Promise<{ port: number }> {
  const server = Fastify()
  gatherBodies(server)
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  server.post('/read', async (request) => await countPieces(request))
  server.post('/full', async (request, reply) => {
    for await (const _piece of request.body as AsyncIterable<Buffer>) return reply.code(403).send({})
  })
  server.post('/refuse', async (_request, reply) => reply.code(404).send({}))
  server.addHook('onError', async (_request, _reply, error) => onError(error))
  await server.listen({ port: 0, host: '127.0.0.1' })
  context.after(() => server.close())
  return { port: (server.server.address() as AddressInfo).port }
}

/** @returns everything that came back until `enough` */
async function sees(context: TestContext, port: number, text: string, enough: RegExp): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  context.after(() => socket.destroy())
  socket.write(text)
  let seen = ''
  while (!enough.test(seen)) seen += String((await once(socket, 'data'))[0])
  return seen
}

test('a body in 100 000 pieces of one byte is read in a few, whole and in order', async (context) => {
  const { port } = await served(context)
  const sent = Array.from({ length: 100_000 }, (_, at) => 'abcdefg'[at % 7]).join('')
  const chunks = sent.replaceAll(/./g, '1\r\n$&\r\n')
  const seen = await sees(context, port, `POST /read HTTP/1.1\r\n${HEAD}\r\n\r\n${chunks}0\r\n\r\n`, /\}/)
  const { pieces, body } = JSON.parse(seen.slice(seen.indexOf('{'))) as Read
  assert.equal(body, sent)
  assert.ok(pieces < 10, `${pieces} pieces`)
})

test('a refused body is dropped, and its connection continues', async (context) => {
  const { port } = await served(context)
  const refused = `POST /refuse HTTP/1.1\r\n${HEAD}\r\n\r\n${'1\r\na\r\n'.repeat(100_000)}0\r\n\r\n`
  const seen = await sees(context, port, refused + `POST /read HTTP/1.1\r\n${HEAD}\r\n\r\n1\r\nx\r\n0\r\n\r\n`, /"x"/)
  assert.match(seen, /^HTTP\/1.1 404 [^]*HTTP\/1.1 200 /)
})

test('a body that is refused in the middle is read on and dropped, so that the client gets its answer', async (context) => {
  const { port } = await served(context)
  const socket = connect(port, '127.0.0.1')
  context.after(() => socket.destroy())
  socket.write(`POST /full HTTP/1.1\r\n${HEAD}\r\n\r\n`)
  const block = `10000\r\n${'a'.repeat(0x10000)}\r\n`
  // More than the buffers of the connection hold: without a reader it would stand still.
  for (let sent = 0; sent < 128; sent++) if (!socket.write(block)) await once(socket, 'drain')
  socket.write(`0\r\n\r\nPOST /read HTTP/1.1\r\n${HEAD}\r\n\r\n1\r\nx\r\n0\r\n\r\n`)
  let seen = ''
  while (!seen.includes('"x"')) seen += String((await once(socket, 'data'))[0])
  assert.match(seen, /^HTTP\/1.1 403 [^]*HTTP\/1.1 200 /)
})

test('one that does not end is closed after a while', async (context) => {
  const { port } = await served(context)
  const socket = connect(port, '127.0.0.1')
  context.after(() => socket.destroy())
  socket.on('error', () => {})
  const closed = new Promise((resolve) => void socket.once('close', resolve))
  socket.write(`POST /full HTTP/1.1\r\n${HEAD}\r\n\r\n`)
  const block = `10000\r\n${'a'.repeat(0x10000)}\r\n`
  const wrote = Promise.withResolvers<void>()
  const write = () => (socket.destroyed ? wrote.resolve() : void socket.write(block, () => setImmediate(write)))
  write()
  await closed
  await wrote.promise
})

test('a client that leaves in the middle ends the body with an error', async (context) => {
  const failed = Promise.withResolvers<unknown>()
  const { port } = await served(context, (error) => failed.resolve(error))
  const socket = connect(port, '127.0.0.1')
  // Its first byte has been read when it is sent away.
  socket.write(`POST /read HTTP/1.1\r\n${HEAD}\r\nExpect: 100-continue\r\n\r\n1\r\na\r\n`)
  await once(socket, 'data')
  socket.resetAndDestroy()
  assert.ok((await failed.promise) instanceof Error)
})
