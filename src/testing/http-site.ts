import type { HeaderList } from '../http/protocol/exchange.ts'
import type { HttpOptions } from '../http/protocol/protect.ts'
import type { RouteDefinition } from '../http/protocol/route.ts'
import type { RouteContext } from '../http/protocol/running.ts'
import type { StatusOptions } from '../http/protocol/status.ts'

/** What every framework's request can be turned into: headers name the caller. */
export interface Asker {
  header(name: string): string | undefined
}

/** What a handler is asked, in words that every framework has. */
export interface Call extends Asker {
  readonly context: RouteContext<unknown> | null
  /** The request's body as the framework gives it to a handler. */
  json(): Promise<unknown>
}

/** What a handler does, in words that every framework has. */
export interface Act {
  /** 200 when left out. */
  readonly status?: number
  /** A name may stand there several times. */
  readonly headers?: HeaderList
  /** Nothing at all, when left out. */
  readonly body?: ActBody
  /** Thrown before anything is answered. Streams that fail in the middle throw by themselves. */
  readonly throws?: unknown
}

export type ActBody =
  /** As the framework sends a text. */
  | { readonly text: string }
  /** As the framework sends JSON. */
  | { readonly json: unknown }
  /** As the framework sends bytes. */
  | { readonly bytes: Uint8Array }
  /** Written piece by piece, directly where the framework allows it. */
  | { readonly writes: () => AsyncIterable<Uint8Array> }
  /** Handed over as a stream. */
  | { readonly stream: () => AsyncIterable<Uint8Array> }

export interface SiteRoute {
  readonly method: string
  /** With `:name` for a part that changes. */
  readonly path: string
  /** The route belongs to a router of its own that is mounted here. */
  readonly mount?: string
  readonly definition: RouteDefinition<Asker>
  act(call: Call): Promise<Act>
}

/** What an adapter is to serve: routes to protect, and where their status is served. */
export interface Site {
  readonly options: HttpOptions<Asker, unknown>
  readonly maxBodyBytes: number
  readonly routes: readonly SiteRoute[]
  readonly status: { readonly path: string; readonly options: StatusOptions<Asker, unknown> }
}

export interface Served {
  readonly port: number
  stop(): Promise<void>
}

/** Serves a site on a free port of the loopback interface. */
export type Serve = (site: Site) => Promise<Served>

/** The site's options for a framework's own request. */
export function optionsFor<N>(site: Site, asker: (request: N) => Asker): HttpOptions<N, unknown> {
  return { ...site.options, who: (request) => site.options.who(asker(request)) }
}

/** The site's options of its status route, for a framework's own request. */
export function statusOptionsFor<N>(site: Site, asker: (request: N) => Asker): StatusOptions<N, unknown> {
  const { authorize, bound: _bound, ...options } = site.status.options
  return {
    ...options,
    who: (request) => options.who(asker(request)),
    ...(authorize === undefined ? {} : { authorize: (request, record) => authorize(asker(request), record) }),
  }
}

/** A route's definition for a framework's own request. */
export function definitionFor<N>(
  { authorize, rebuild, ...rest }: RouteDefinition<Asker>,
  asker: (request: N) => Asker,
): RouteDefinition<N> {
  return {
    ...rest,
    ...(authorize === undefined ? {} : { authorize: (request: N, record) => authorize(asker(request), record) }),
    ...(rebuild === undefined ? {} : { rebuild: (pointer, request: N) => rebuild(pointer, asker(request)) }),
  } as RouteDefinition<N>
}

/** For adapters that know no routes. */
export function routeAt(site: Site, method: string, target: string): SiteRoute | 'status' | null {
  const path = target.split('?')[0] ?? '/'
  const fits = (pattern: string) =>
    new RegExp(`^${pattern.replaceAll(/:[a-z]+/g, '[^/]+').replaceAll('.', '\\.')}$`).test(path)
  if (method === 'GET' && fits(site.status.path)) return 'status'
  return site.routes.find((route) => route.method === method && fits((route.mount ?? '') + route.path)) ?? null
}
