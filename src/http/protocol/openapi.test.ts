import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CommandRoute, ServedRoute } from './describe.ts'
import { openapi } from './openapi.ts'

const escalate: CommandRoute = {
  kind: 'command',
  method: 'POST',
  path: '/cases/{id}',
  definition: { name: 'case.escalate', effect: 'transaction', retainMs: 7 * 86_400_000 },
}

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly required: boolean }[]
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly description: string
        readonly headers?: Readonly<Record<string, unknown>>
        readonly content?: Readonly<Record<string, { readonly examples?: Readonly<Record<string, unknown>> }>>
      }
    >
  >
  readonly 'x-onceonly': { readonly retainMs: number; readonly checklist: readonly unknown[] }
}

function operationOf(route: ServedRoute, responses: object = {}): Operation {
  const method = route.method.toLowerCase()
  const document = openapi({ openapi: '3.1.1', paths: { [route.path]: { [method]: { responses } } } }, [route])
  return document.paths[route.path]?.[method] as Operation
}

test('an operation learns its key, its problems, its replay header and its lifetime', () => {
  const own = { '201': { description: 'Created' }, '422': { description: 'Refused' }, '429': { description: 'Slowly' } }
  const operation = operationOf(escalate, own)
  assert.deepEqual(
    operation.parameters.map(({ name, required }) => [name, required]),
    [['Idempotency-Key', true]],
  )
  assert.deepEqual(Object.keys(operation.responses), ['201', '400', '409', '413', '422', '429', '503'])
  // What is recorded is replayed: successes and refusals, but not what belongs to the moment.
  assert.ok(operation.responses['201']?.headers?.['Idempotent-Replayed'])
  assert.ok(operation.responses['201']?.headers?.['Access-Control-Expose-Headers'])
  assert.ok(operation.responses['422']?.headers?.['Idempotent-Replayed'])
  assert.equal(operation.responses['429']?.headers, undefined)
  assert.equal(operation['x-onceonly'].retainMs, 7 * 86_400_000)
  assert.equal(operation['x-onceonly'].checklist.length, 14)
})

test('a status that the route uses itself lists both reasons', () => {
  const own = { '409': { description: 'Already escalated', content: { 'application/problem+json': { schema: {} } } } }
  const conflict = operationOf(escalate, own).responses['409']
  assert.match(conflict?.description ?? '', /^Already escalated; The key was used for another request; /)
  assert.deepEqual(Object.keys(conflict?.content?.['application/problem+json']?.examples ?? {}).sort(), [
    'idempotency-key-reused',
    'request-in-progress',
    'response-not-stored',
  ])
  assert.ok(conflict?.headers?.['Retry-After'])
})

test('the answers are those of the route’s profile', () => {
  const spoken = (profile: 'ietf' | 'stripe') =>
    operationOf({ ...escalate, definition: { ...escalate.definition, profile } }).responses
  assert.ok(spoken('ietf')['422']?.content?.['application/problem+json']?.examples?.['idempotency-key-reused'])
  assert.ok(spoken('stripe')['400']?.content?.['application/json']?.examples?.['idempotency-key-reused'])
})

test('options of a route bring their answers along', () => {
  const { responses, parameters } = operationOf({
    ...escalate,
    definition: {
      effect: 'external',
      key: 'optional',
      whileRunning: 'accept',
      afterExpiry: 'refuse',
      authorize: () => true,
      perKeyLimit: { attempts: 5, perMs: 1_000 },
    },
  })
  assert.deepEqual(Object.keys(responses), ['202', '400', '403', '409', '412', '413', '429', '503'])
  assert.ok(responses['202']?.headers?.['Location'])
  assert.equal(parameters[0]?.required, false)
  const { parameters: none } = operationOf({
    ...escalate,
    definition: { effect: 'external', keyFrom: { field: 'token' } },
  })
  assert.deepEqual(none, [])
})

test('a route that offers respond-async documents its header and its 202', () => {
  const { responses, parameters } = operationOf({
    ...escalate,
    definition: { ...escalate.definition, respondAsync: true },
  })
  assert.deepEqual(
    parameters.map(({ name, required }) => [name, required]),
    [
      ['Idempotency-Key', true],
      ['Prefer', false],
    ],
  )
  assert.ok(responses['202']?.headers?.['Preference-Applied'])
  assert.ok(responses['409']?.content?.['application/problem+json']?.examples?.['request-in-progress'])
  assert.equal(operationOf(escalate).responses['202'], undefined)
})

test('batches and natural routes document their design, and nothing else is added', () => {
  const batch = operationOf(
    { kind: 'batch', method: 'POST', path: '/b', definition: { name: 'b', effect: 'external' } },
    { '200': { description: 'Done' } },
  )
  assert.deepEqual(batch.responses, { '200': { description: 'Done' } })
  assert.equal(batch.parameters, undefined)
  assert.equal(batch['x-onceonly'].checklist.length, 14)
  const natural = operationOf({ kind: 'natural', method: 'PUT', path: '/n', about: { repeats: 'nothing changes' } })
  assert.equal(natural['x-onceonly'].checklist.length, 14)
})

test('the document that was given stays as it is', () => {
  const given = { openapi: '3.1.1', paths: { '/cases/{id}': { post: { responses: {} } } } }
  const before = structuredClone(given)
  openapi(given, [escalate])
  assert.deepEqual(given, before)
})
