import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChecklistTopic, CommandRoute, ServedRoute } from './describe.ts'
import { checklist, describe, openAnswers } from './describe.ts'

const about = {
  documentation: '/docs',
  businessUniqueness: 'one per case',
  outbox: 'ids of the command',
  tests: 'twenty at once',
}
const escalate: CommandRoute = {
  kind: 'command',
  method: 'POST',
  path: '/cases/{id}',
  definition: { name: 'case.escalate', effect: 'transaction', retainMs: 7 * 86_400_000, about },
}

function answer(route: ServedRoute, topic: ChecklistTopic): string | null | undefined {
  return describe(route).find((each) => each.topic === topic)?.answer
}

test('a route answers every question of the design checklist', () => {
  const answers = describe(escalate)
  assert.deepEqual(
    answers.map(({ question }) => question),
    Object.values(checklist),
  )
  assert.equal(answers.length, 14)
  assert.deepEqual(openAnswers([escalate]), [])
  assert.equal(answer(escalate, 'retention'), '7 d from settling; a new key afterwards')
  assert.equal(answer(escalate, 'scope'), 'tenant, caller, case.escalate, key')
})

test('an unanswered question is open, and is found', () => {
  const careless: ServedRoute = { ...escalate, definition: { effect: 'external', about: { tests: ' ' } } }
  assert.deepEqual(
    openAnswers([escalate, careless]).map(({ method, path, topic }) => `${method} ${path} ${topic}`),
    ['uniqueness', 'outbox', 'external', 'documentation', 'tests'].map((topic) => `POST /cases/{id} ${topic}`),
  )
})

test('a route without a key says how its contents are compared', () => {
  const keyOf = (definition: object) =>
    answer({ ...escalate, definition: { ...escalate.definition, ...definition } as CommandRoute['definition'] }, 'key')
  const where = 'the header Idempotency-Key'
  assert.equal(keyOf({ key: 'optional' }), `no; with one in ${where} the request is protected`)
  assert.equal(
    keyOf({ key: 'optional', content: {} }),
    `no; without one in ${where} equal contents of a tenant are one request for 15 min`,
  )
})

test('a batch answers for its items', () => {
  const batch: ServedRoute = {
    kind: 'batch',
    method: 'POST',
    path: '/cases:batchCreate',
    definition: { name: 'case.batchCreate', effect: 'transaction', afterExpiry: 'refuse', refuseMs: 60_000, about },
  }
  assert.deepEqual(openAnswers([batch]), [])
  assert.equal(answer(batch, 'scope'), 'tenant, caller, case.batchCreate, batchId, itemKey')
  assert.match(String(answer(batch, 'retention')), /; refused for 1 min afterwards$/)
  assert.equal(openAnswers([{ ...batch, definition: { name: 'careless', effect: 'external' } }]).length, 5)
})

test('a route without a key says what a repetition does', () => {
  const natural = { kind: 'natural', method: 'PUT', path: '/cases/{id}' } as const
  const described: ServedRoute = { ...natural, about: { ...about, repeats: 'the last write stands' } }
  assert.equal(answer(described, 'key'), 'no: the last write stands')
  assert.deepEqual(openAnswers([described]), [])
  const silent = openAnswers([{ ...natural, about: { ...about, repeats: '' } }])
  assert.deepEqual(
    silent.map(({ topic }) => topic),
    ['key'],
  )
})
