import type { FastifyInstance } from 'fastify'
import type { ServedRoute } from 'onceonly/openapi'
import type { Declaration } from './declaration.ts'

/** A route as the server serves it. */
export interface CollectedRoute {
  readonly method: string
  /** As OpenAPI writes it: `/api/messages/{id}`. */
  readonly path: string
  /** Null where its author has declared nothing. */
  readonly declaration: Declaration | 'page' | null
}

/** Grows with every route that is added after this call. A `HEAD` is its `GET` without a body, and is not listed. */
export function collectRoutes(server: FastifyInstance): readonly CollectedRoute[] {
  const routes: CollectedRoute[] = []
  server.addHook('onRoute', ({ method, url, config }) => {
    for (const each of [method].flat()) {
      if (each === 'HEAD') continue
      routes.push({ method: each, path: pathOf(url), declaration: config?.declaration ?? null })
    }
  })
  return routes
}

/** Fastify writes a variable as `:id`, and a colon as two. */
function pathOf(url: string): string {
  return url.replace(/::|:(\w+)/g, (_, name: string | undefined) => (name === undefined ? ':' : `{${name}}`))
}

/** What changes something, as the design checklist wants it. */
export function servedRoutes(routes: readonly CollectedRoute[]): readonly ServedRoute[] {
  return routes.flatMap(({ method, path, declaration }) =>
    declaration === null || declaration === 'page' || declaration.repeat === undefined
      ? []
      : [{ ...declaration.repeat, method, path }],
  )
}
