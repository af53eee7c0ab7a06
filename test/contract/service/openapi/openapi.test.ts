import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import Fastify from 'fastify'
import { openAnswers } from 'onceonly/openapi'
import { type CollectedRoute, collectRoutes, servedRoutes } from '../../../../service/openapi/collect.ts'
import { type Declaration, record, text } from '../../../../service/openapi/declaration.ts'
import { documentOf } from '../../../../service/openapi/document.ts'
import { openedService, type TestedDocument } from '../../../support/service/openapi/opened.ts'

const { service, document, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`

/** What is wrong with what routes declare, and with the document that is made of it. */
function complaints(routes: readonly CollectedRoute[], { paths }: Pick<TestedDocument, 'paths'>): string[] {
  const documented = new Set(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((each) => `${each.toUpperCase()} ${path}`),
    ),
  )
  const served = new Set(routes.map(nameOf))
  return [
    ...routes.flatMap((route) => {
      const { declaration, method } = route
      const changes = method !== 'GET'
      if (declaration === null) return [`${nameOf(route)} is not declared`]
      if (declaration === 'page') return changes ? [`${nameOf(route)} changes something, and is no page`] : []
      return [
        ...(changes && declaration.repeat === undefined ? [`${nameOf(route)} does not say what repeats it`] : []),
        ...(documented.has(nameOf(route)) ? [] : [`${nameOf(route)} is not documented`]),
      ]
    }),
    ...openAnswers(servedRoutes(routes)).map((open) => `${nameOf(open)} leaves open: ${open.question}`),
    ...[...documented].filter((name) => !served.has(name)).map((name) => `${name} is documented, but not served`),
  ]
}

test('every route is declared and documented, and what changes something passes the design checklist', () => {
  assert.deepEqual(complaints(service.routes, document), [])
  const changing = service.routes.filter(({ method }) => method !== 'GET').map(nameOf)
  for (const name of [
    'POST /api/messages',
    'POST /api/messages:batchSend',
    'POST /case-escalations',
    'POST /case-escalations:batchCreate',
    'POST /api/admin/workspaces/{id}/keys',
    'PUT /api/admin/cases/{id}',
    'DELETE /api/admin/guard/locks/{hash}',
  ]) {
    assert.ok(changing.includes(name), name)
  }
})

const declared: Declaration = {
  id: 'things.put',
  system: { name: 'things', about: 'Things.' },
  summary: 'Put a thing',
  access: 'api key',
  path: { id: 'Of the thing.' },
  body: { schema: record({ name: text }), example: { name: 'a' } },
  answers: { 204: { about: 'Done' } },
  repeat: {
    kind: 'natural',
    about: {
      repeats: 'it is the same',
      businessUniqueness: 'a key',
      outbox: 'none',
      documentation: '/docs',
      tests: 'here',
    },
  },
}

/** The routes of a server that has one route, as Fastify reports them. */
function routesOf(declaration: Declaration | 'page' | undefined): readonly CollectedRoute[] {
  const server = Fastify()
  const routes = collectRoutes(server)
  server.put('/things/:id', declaration === undefined ? {} : { config: { declaration } }, () => null)
  return routes
}

test('a route that is undeclared, incomplete or not served is noticed', () => {
  const documented = documentOf(routesOf(declared)) as TestedDocument
  assert.deepEqual(complaints(routesOf(declared), documented), [])
  const nothing = documentOf([]) as TestedDocument
  assert.deepEqual(complaints(routesOf(undefined), nothing), ['PUT /things/{id} is not declared'])
  assert.deepEqual(complaints(routesOf('page'), nothing), ['PUT /things/{id} changes something, and is no page'])
  const { repeat: _, ...silent } = declared
  assert.deepEqual(complaints(routesOf(silent), documented), ['PUT /things/{id} does not say what repeats it'])
  assert.deepEqual(complaints(routesOf(declared), nothing), ['PUT /things/{id} is not documented'])
  assert.deepEqual(complaints([], documented), ['PUT /things/{id} is documented, but not served'])
  const careless: Declaration = { ...declared, repeat: { kind: 'natural', about: { repeats: 'who knows' } } }
  assert.equal(complaints(routesOf(careless), documented).length, 4)
})

/** Errors and warnings of the linter's recommended rules. */
async function lint(linted: unknown): Promise<string[]> {
  const rules = {
    // Health and the document itself have no refusals.
    'operation-4xx-response': 'off',
    'operation-operationId-unique': 'error',
    'path-parameters-defined': 'error',
    'no-unused-components': 'error',
    'no-invalid-media-type-examples': 'error',
    'no-schema-type-mismatch': 'error',
    'tag-description': 'error',
    'operation-tag-defined': 'error',
  } as const
  const config = await createConfig({ extends: ['recommended'], rules })
  const problems = await lintFromString({ source: JSON.stringify(linted), absoluteRef: '/openapi.json', config })
  return problems.map(({ ruleId, message, location: [at] }) => `${ruleId}: ${message} (${at?.pointer})`)
}

test('a linter accepts the document', async () => {
  assert.deepEqual(await lint(document), [])
})

/** A part of the document that is an object. */
function part(of: unknown, ...path: readonly string[]): Record<string, unknown> {
  const [name, ...rest] = path
  return name === undefined ? (of as Record<string, unknown>) : part((of as Record<string, unknown>)[name], ...rest)
}

const escalatePath = ['paths', '/case-escalations', 'post'] as const

test('the linter notices a document that is broken', async () => {
  for (const [rule, breaks] of [
    ['struct', (copy) => delete part(copy, 'info')['title']],
    ['no-unresolved-refs', (copy) => delete part(copy, 'components', 'schemas')['Escalation']],
    ['operation-operationId-unique', (copy) => (part(copy, ...escalatePath)['operationId'] = 'messages.send')],
    ['security-defined', (copy) => (part(copy, ...escalatePath)['security'] = [{ unknown: [] }])],
    ['path-parameters-defined', (copy) => delete part(copy, 'paths', '/case-escalations/{id}', 'get')['parameters']],
    [
      'no-invalid-media-type-examples',
      (copy) => (part(copy, ...escalatePath, 'requestBody', 'content', 'application/json', 'example')['caseId'] = 7),
    ],
    ['operation-tag-defined', (copy) => (part(copy, ...escalatePath)['tags'] = ['nowhere'])],
  ] as [string, (copy: unknown) => unknown][]) {
    const copy = structuredClone(document)
    breaks(copy)
    const problems = await lint(copy)
    const noticed = problems.some((problem) => problem.startsWith(`${rule}: `))
    assert.ok(noticed, `${rule} is not among ${JSON.stringify(problems)}`)
  }
})

test('what is declared is in the document: key, lifetime, replay header, problems and security', () => {
  const escalate = part(document, ...escalatePath)
  assert.deepEqual(escalate['security'], [{ apiKey: [] }])
  const { name, in: where, required } = part(escalate, 'parameters', '0')
  assert.deepEqual([name, where, required], ['Idempotency-Key', 'header', true])
  assert.equal(part(escalate, 'x-onceonly')['operation'], 'case.escalate')
  assert.equal(typeof part(escalate, 'x-onceonly')['retainMs'], 'number')
  const headers = part(escalate, 'responses', '201', 'headers')
  for (const header of ['Idempotent-Replayed', 'Access-Control-Expose-Headers', 'Location']) assert.ok(headers[header])
  const { description } = part(escalate, 'responses', '409')
  assert.match(String(description), /^Already escalated to this queue; The key was used/)
  const send = part(document, 'paths', '/api/messages', 'post', 'x-onceonly')
  assert.deepEqual([send['key'], send['retainMs']], ['optional', 24 * 3_600_000])
})
