import type { FastifyInstance } from 'fastify'
import { problemPage } from 'onceonly/openapi'
import { problems } from './problems.ts'

/** The `type` of a problem document leads here. */
export function addProblems(server: FastifyInstance): void {
  const options = { config: { declaration: 'page' } } as const
  server.get<{ Params: { name: string } }>('/problems/:name', options, (request, reply) => {
    const { name } = request.params
    const page = problemPage({ name, type: `/problems/${name}`, accept: request.headers.accept }, problems)
    if (page === null) return reply.callNotFound()
    for (const [header, value] of page.headers) reply.header(header, value)
    return reply.code(page.status).send(Buffer.from(page.body))
  })
}
