import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServedRoute } from './describe.ts'
import { describe } from './describe.ts'
import { openapi } from './openapi.ts'

const about = {
  summary: '/docs',
  businessUniqueness: 'one per case',
  outbox: 'ids of the command',
  tests: 'twenty at once',
}
const escalate: ServedRoute = {
  method: 'POST',
  path: '/cases/{id}',
  definition: { name: 'case.escalate', effect: 'transaction', retainMs: 7 * 86_400_000, about },
}

test('a route answers the design checklist, and what nobody thought of is open', () => {
  const answers = describe(escalate)
  assert.equal(answers.length, 14)
  assert.deepEqual(
    answers.filter(({ answer }) => answer === null),
    [],
  )
  assert.equal(
    answers.find(({ question }) => question.startsWith('How long'))?.answer,
    '7 d from settling; a new key afterwards',
  )
  const careless = describe({ ...escalate, definition: { effect: 'external' } })
  assert.deepEqual(
    careless.filter(({ answer }) => answer === null).map(({ question }) => question),
    [
      'Is business uniqueness enforced?',
      'Is the outbox dedup-safe?',
      'Are external calls idempotent or reconciled?',
      'Where is it documented?',
      'Which concurrency tests?',
    ],
  )
})

test('an OpenAPI document learns the key, the problems, the replay header and the lifetime', () => {
  const responses = { '201': { description: 'Created' }, '422': { description: 'Refused' } }
  const document = openapi({ openapi: '3.1.0', paths: { '/cases/{id}': { post: { responses } } } }, [escalate])
  const operation = document.paths['/cases/{id}'].post as never as {
    parameters: { name: string; required: boolean }[]
    responses: Record<string, { headers?: Record<string, unknown>; content?: Record<string, unknown> }>
    'x-onceonly': { retainMs: number }
  }
  assert.deepEqual(
    operation.parameters.map(({ name, required }) => [name, required]),
    [['Idempotency-Key', true]],
  )
  assert.deepEqual(Object.keys(operation.responses), ['201', '400', '409', '422', '503'])
  assert.ok(operation.responses['201']?.headers?.['Idempotent-Replayed'])
  assert.equal(operation.responses['422']?.headers, undefined)
  assert.ok(operation.responses['409']?.content?.['application/problem+json'])
  assert.equal(operation['x-onceonly'].retainMs, 7 * 86_400_000)
})
