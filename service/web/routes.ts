import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readPages } from 'onceonly/pages'

/** The first page, the console and the chat. What they may see and do is decided where they ask for it. */
export async function addWeb(server: FastifyInstance): Promise<void> {
  const pages = await readPages()
  const send = async (request: FastifyRequest, reply: FastifyReply) => {
    const { headers: asked, url } = request
    const { status, headers, body } = await pages.answer({
      path: url.replace(/\?.*$/, ''),
      ifNoneMatch: asked['if-none-match'],
      acceptEncoding: asked['accept-encoding'],
    })
    return reply.code(status).headers(headers).send(body)
  }
  for (const path of ['/', '/console', '/console/*', '/chat'])
    server.get(path, { config: { declaration: 'page' } }, send)
}
