import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import type { Type } from '@nestjs/common'
import {
  Controller,
  Get,
  Header,
  HttpCode,
  Module,
  Req,
  RequestMapping,
  RequestMethod,
  Res,
  StreamableFile,
} from '@nestjs/common'
import type { NestExpressApplication } from '@nestjs/platform-express'
import type { NestFastifyApplication } from '@nestjs/platform-fastify'
import { Idempotent, Once, OnceonlyModule, type RouteContext, ShowOperation } from 'onceonly/nest'
import type { Act, Asker, Served, Site, SiteRoute } from 'onceonly/testing'
import { definitionFor, httpConformance, optionsFor, statusOptionsFor } from 'onceonly/testing'
import type { Platform } from './platforms.ts'
import { platforms, start } from './platforms.ts'

interface AnyRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body?: unknown
}

/** What both platforms' responses have in common, and Node's own response under Fastify's. */
interface AnyResponse {
  status(code: number): unknown
  raw?: ServerResponse
  hijack?(): unknown
}

const asker = ({ headers }: AnyRequest): Asker => ({ header: (name) => headers[name] as string | undefined })

function setHeaders(response: AnyResponse, headers: Act['headers'] = []): void {
  const names = new Set(headers.map(([name]) => name))
  for (const name of names) {
    const values = headers.filter(([each]) => each === name).map(([, value]) => value)
    const value = values.length === 1 ? values[0] : values
    if (response.raw === undefined) (response as unknown as ServerResponse).setHeader(name, value ?? '')
    else (response as unknown as { header(name: string, value: unknown): unknown }).header(name, value)
  }
}

/** As a method does it that returns its value; only what is written piece by piece goes past Nest. */
async function perform(response: AnyResponse, { status = 200, headers = [], body, throws }: Act): Promise<unknown> {
  if (throws !== undefined) throw throws
  response.status(status)
  setHeaders(response, headers)
  if (body === undefined) return undefined
  if ('text' in body) return body.text
  if ('json' in body) return body.json
  const length = headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
  const known = length === undefined ? {} : { length: Number(length) }
  if ('bytes' in body) return new StreamableFile(body.bytes, known)
  if ('stream' in body) return new StreamableFile(Readable.from(body.stream(), { objectMode: false }), known)
  return written
}

const written = Symbol('written by hand')

/** A controller of its own for every route of the site. */
function controllerOf(route: SiteRoute): Type<unknown> {
  class SiteController {
    async act(request: AnyRequest, response: AnyResponse, context: RouteContext<unknown> | null): Promise<unknown> {
      const act = await route.act({ ...asker(request), context, json: async () => request.body })
      const result = await perform(response, act)
      if (result !== written) return result
      response.hijack?.()
      const raw = response.raw ?? (response as unknown as ServerResponse)
      raw.statusCode = act.status ?? 200
      if (response.raw !== undefined) for (const [name, value] of act.headers ?? []) raw.appendHeader(name, value)
      try {
        if (act.body !== undefined && 'writes' in act.body) {
          for await (const chunk of act.body.writes()) if (!raw.write(chunk)) await once(raw, 'drain')
        }
        raw.end()
      } catch (error) {
        raw.destroy(error as Error)
      }
      return undefined
    }
  }
  const { prototype } = SiteController
  const method = RequestMethod[route.method as 'POST']
  Req()(prototype, 'act', 0)
  Res({ passthrough: true })(prototype, 'act', 1)
  Once()(prototype, 'act', 2)
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'act') as TypedPropertyDescriptor<SiteController['act']>
  RequestMapping({ path: route.path, method })(prototype, 'act', descriptor)
  // oxlint-disable-next-line typescript/no-explicit-any -- the kit knows the definition only as one of all kinds.
  Idempotent(definitionFor(route.definition, asker) as any)(prototype, 'act', descriptor as any)
  Object.defineProperty(prototype, 'act', descriptor)
  Controller(route.mount ?? '')(SiteController)
  return SiteController
}

function statusController(site: Site): Type<unknown> {
  const { path } = site.status
  const { authorize } = statusOptionsFor(site, asker)
  @Controller(path.replace(/\/:id$/, ''))
  class StatusController {
    @Get(':id')
    @HttpCode(418)
    @Header('x-nest', 'yes')
    @ShowOperation(authorize === undefined ? {} : { authorize })
    show(): void {}
  }
  return StatusController
}

function serveOn(platform: Platform) {
  return async (site: Site): Promise<Served> => {
    @Module({
      imports: [
        OnceonlyModule.forRoot({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes, stopLedger: false }),
      ],
      controllers: [...site.routes.map(controllerOf), statusController(site)],
    })
    class SiteModule {}

    const { port, app } = await start(platform, SiteModule, (each) => parsers(platform, each, site.maxBodyBytes), {
      bodyLimit: site.maxBodyBytes,
    })
    return { port, stop: () => app.close() }
  }
}

/** Types beside JSON, as bytes. */
function parsers(platform: Platform, app: unknown, limit: number): void {
  if (platform === 'express') {
    const express = app as NestExpressApplication
    express.useBodyParser('json', { limit })
    express.useBodyParser('raw', {
      limit,
      type: (request: IncomingMessage) => !/json|text/.test(request.headers['content-type'] ?? ''),
    })
    express.useBodyParser('text', { limit })
  } else {
    const fastify = app as NestFastifyApplication
    fastify.useBodyParser(['application/octet-stream', 'text/plain', /^multipart\//] as never)
  }
}

for (const platform of platforms) {
  httpConformance({ test: (name, body) => test(`nest on ${platform}: ${name}`, body), serve: serveOn(platform) })
}
