import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { openapiDocument } from '../http/document.ts'
import { pagePolicy } from '../http/page-policy.ts'
import type { CollectedRoute } from '../openapi/collect.ts'
import { documentOf } from '../openapi/document.ts'
import { docsPage } from './page.ts'
import type { ShownDocument } from './shown.ts'

/** `/openapi.json` for programs and `/docs` for people, both made of what the routes declare. */
export async function addDocs(server: FastifyInstance, routes: readonly CollectedRoute[]): Promise<void> {
  const [style, script] = await Promise.all([asset('style.css'), asset('script.js')])
  // Made when it is first asked for: then every system has added its routes.
  const made = once(() => {
    const json = JSON.stringify(documentOf(routes))
    return { json, html: docsPage(JSON.parse(json) as ShownDocument, { style, script }) }
  })
  const policy = pagePolicy({ style, script, asks: false })

  server.get('/openapi.json', { config: { declaration: openapiDocument } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(made().json),
  )
  server.get('/docs', { config: { declaration: 'page' } }, (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(made().html),
  )
}

function asset(name: string): Promise<string> {
  return readFile(join(import.meta.dirname, name), 'utf8')
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null
  return () => (made ??= { value: make() }).value
}
