import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startedService } from './test-service.ts'

const command = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'Customer disputes the invoice' }

test('a retry gets the same answer and creates nothing', async () => {
  await using service = await startedService()
  const first = await service.escalate('key-1', command)
  const again = await service.escalate('"key-1"', { ...command })
  assert.equal(first.status, 201)
  assert.equal(first.headers.get('idempotent-replayed'), null)
  assert.equal(first.headers.get('location'), '/case-escalations/ESC-1001')
  assert.equal(again.status, 201)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(again.headers.get('location'), '/case-escalations/ESC-1001')
  assert.equal(again.text, first.text)

  const other = await service.escalate('key-2', command)
  assert.equal(other.body.escalationId, 'ESC-1002')
})

test('a key that is reused for another command is refused, and the record stays', async () => {
  await using service = await startedService()
  const first = await service.escalate('key-1', command)
  const reused = await service.escalate('key-1', { ...command, targetQueue: 'BILLING' })
  assert.equal(reused.status, 409)
  assert.equal(reused.headers.get('content-type'), 'application/problem+json; charset=utf-8')
  assert.equal(reused.body.type, '/problems/idempotency-key-reused')
  assert.equal(reused.body.retryable, false)
  const again = await service.escalate('key-1', command)
  assert.deepEqual(again.body, first.body)
})

test('twenty identical requests at once create one escalation', async () => {
  await using service = await startedService()
  const answers = await Promise.all(Array.from({ length: 20 }, () => service.escalate('key-1', command)))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
  const bodies = new Set(answers.map(({ text }) => text))
  assert.equal(bodies.size, 1)
  assert.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1)
  assert.equal((await service.get('/case-escalations/ESC-1002')).status, 404)
})

test('the record survives a restart', async () => {
  await using service = await startedService()
  const first = await service.escalate('key-1', command)
  await service.restart()
  const again = await service.escalate('key-1', command)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual(again.body, first.body)
  const read = await service.get('/case-escalations/ESC-1001')
  assert.deepEqual(await read.json(), first.body)
})

test('bad input is named field by field and uses up no key', async () => {
  await using service = await startedService()
  const bad = await service.escalate('key-1', { targetQueue: ' ', reason: 7, colour: 'red' })
  assert.equal(bad.status, 400)
  assert.deepEqual(bad.body.errors, [
    { field: 'colour', detail: 'is not a field of this command' },
    { field: 'caseId', detail: 'is missing' },
    { field: 'targetQueue', detail: 'is blank' },
    { field: 'reason', detail: 'is not a string' },
  ])
  assert.equal((await service.escalate('key-1', command)).status, 201)
})

for (const [name, key, type] of [
  ['a missing key', undefined, 'idempotency-key-missing'],
  ['an empty key', '""', 'idempotency-key-invalid'],
  ['two keys', 'a, b', 'idempotency-key-invalid'],
  ['a key that is too long', 'k'.repeat(256), 'idempotency-key-invalid'],
] as const) {
  test(`${name} is refused`, async () => {
    await using service = await startedService()
    const answer = await service.escalate(key, command)
    assert.equal(answer.status, 400)
    assert.equal(answer.body.type, `/problems/${type}`)
    assert.equal(answer.body.errors?.[0]?.field, 'Idempotency-Key')
  })
}

test('a body that is not JSON is refused', async () => {
  await using service = await startedService()
  const answer = await service.post('key-1', '{"caseId":')
  assert.equal(answer.status, 400)
  assert.equal(answer.body.errors?.[0]?.field, 'body')
})
