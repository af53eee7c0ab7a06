import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Answer, startedService } from './test-service.ts'

/** One server for all tests, so that each of them has keys of its own. */
const service = await startedService()
after(() => service[Symbol.asyncDispose]())

const command = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'Customer disputes the invoice' }

function numberOf(answer: Answer | undefined): number {
  return Number(answer?.body.escalationId?.replace('ESC-', ''))
}

test('a retry gets the same answer and creates nothing', async () => {
  const first = await service.escalate('retry', command)
  const again = await service.escalate('"retry"', { ...command })
  assert.equal(first.status, 201)
  assert.equal(first.headers.get('idempotent-replayed'), null)
  assert.equal(first.headers.get('location'), '/case-escalations/ESC-1001')
  assert.equal(again.status, 201)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(again.headers.get('location'), '/case-escalations/ESC-1001')
  assert.equal(again.text, first.text)

  const other = await service.escalate('another', command)
  assert.equal(other.body.escalationId, 'ESC-1002')
})

test('a key that is reused for another command is refused, and the record stays', async () => {
  const first = await service.escalate('reused', command)
  const reused = await service.escalate('reused', { ...command, targetQueue: 'BILLING' })
  assert.equal(reused.status, 409)
  assert.equal(reused.headers.get('content-type'), 'application/problem+json; charset=utf-8')
  assert.equal(reused.body.type, '/problems/idempotency-key-reused')
  assert.equal(reused.body.retryable, false)
  const again = await service.escalate('reused', command)
  assert.deepEqual(again.body, first.body)
})

test('twenty identical requests at once create one escalation', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => service.escalate('twenty', command)))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
  const bodies = new Set(answers.map(({ text }) => text))
  assert.equal(bodies.size, 1)
  assert.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1)
  const next = await service.escalate('after twenty', command)
  assert.equal(numberOf(next), numberOf(answers[0]) + 1)
})

test('the record survives a restart', async () => {
  const first = await service.escalate('restart', command)
  await service.restart()
  const again = await service.escalate('restart', command)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual(again.body, first.body)
  const read = await service.get(`/case-escalations/${first.body.escalationId}`)
  assert.deepEqual(await read.json(), first.body)
})

test('bad input is named field by field and uses up no key', async () => {
  const bad = await service.escalate('bad-input', { targetQueue: ' ', reason: 7, colour: 'red' })
  assert.equal(bad.status, 400)
  assert.deepEqual(bad.body.errors, [
    { field: 'colour', detail: 'is not a field of this command' },
    { field: 'caseId', detail: 'is missing' },
    { field: 'targetQueue', detail: 'is blank' },
    { field: 'reason', detail: 'is not a string' },
  ])
  assert.equal((await service.escalate('bad-input', command)).status, 201)
})

for (const [name, key, type] of [
  ['a missing key', undefined, 'idempotency-key-missing'],
  ['an empty key', '""', 'idempotency-key-invalid'],
  ['two keys', 'a, b', 'idempotency-key-invalid'],
  ['a key that is too long', 'k'.repeat(256), 'idempotency-key-invalid'],
] as const) {
  test(`${name} is refused`, async () => {
    const answer = await service.escalate(key, command)
    assert.equal(answer.status, 400)
    assert.equal(answer.body.type, `/problems/${type}`)
    assert.equal(answer.body.errors?.[0]?.field, 'Idempotency-Key')
  })
}

test('a body that is not JSON is refused', async () => {
  const answer = await service.post('json', '{"caseId":')
  assert.equal(answer.status, 400)
  assert.equal(answer.body.errors?.[0]?.field, 'body')
})
