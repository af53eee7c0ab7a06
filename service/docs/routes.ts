import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { openapiDocument } from '../http/document.ts'
import type { CollectedRoute } from '../openapi/collect.ts'
import { documentOf } from '../openapi/document.ts'
import { readable } from './readable.ts'

const zip = promisify(gzip)

/** Where the renderer's files are. */
const renderer = join(dirname(fileURLToPath(import.meta.resolve('@fastify/swagger-ui'))), 'static')

const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' } as const

/** Nothing is fetched from another host, and no other script runs. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** `/openapi.json` for programs and `/docs` for people, both made of what the routes declare. */
export async function addDocs(server: FastifyInstance, routes: readonly CollectedRoute[]): Promise<void> {
  const page = await readFile(join(import.meta.dirname, 'page.html'), 'utf8')
  // Made when they are first asked for: then every system has added its routes.
  const document = once(() => documentOf(routes))
  const forPrograms = once(() => JSON.stringify(document()))
  const forPeople = once(() => JSON.stringify(readable(document())))

  server.get('/openapi.json', { config: { declaration: openapiDocument } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(forPrograms()),
  )
  server.get('/docs', { config: { declaration: 'page' } }, (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(page),
  )
  server.get('/docs/openapi.json', { config: { declaration: 'page' } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(forPeople()),
  )
  addFile(server, import.meta.dirname, 'style.css')
  addFile(server, import.meta.dirname, 'start.js')
  addFile(server, renderer, 'swagger-ui.css')
  addFile(server, renderer, 'swagger-ui-bundle.js')
}

/** Read and compressed when it is first asked for: most processes never show their documentation. */
function addFile(server: FastifyInstance, folder: string, name: `${string}.${keyof typeof types}`): void {
  const type = types[name.endsWith('.js') ? 'js' : 'css']
  const plain = once(() => readFile(join(folder, name)))
  const zipped = once(async () => zip(await plain()))
  server.get(`/docs/${name}`, { config: { declaration: 'page' } }, async (request, reply) => {
    const isZipped = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '')
    // Without a version in its name it is asked for again after an hour.
    reply.type(type).headers({ 'cache-control': 'public, max-age=3600', vary: 'accept-encoding' })
    return isZipped ? reply.header('content-encoding', 'gzip').send(await zipped()) : reply.send(await plain())
  })
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null
  return () => (made ??= { value: make() }).value
}
