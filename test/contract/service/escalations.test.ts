import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Answer, startedService } from '../../support/service/service.ts'

/** One server for all tests; each has keys and a queue of its own, because a case is escalated to a queue once. */
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
})

test('under another key the case is already escalated for every caller, and the response has its location', async () => {
  const first = await service.escalate('already-1', { ...command, caseId: 'CASE-102' })
  const second = await service.escalate('already-2', { ...command, caseId: 'CASE-102' })
  assert.equal(second.status, 409)
  assert.equal(second.body.type, '/problems/already-escalated')
  assert.equal(second.headers.get('location'), first.headers.get('location'))
  const again = await service.escalate('already-2', { ...command, caseId: 'CASE-102' })
  assert.equal(again.text, second.text)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
})

test('a case that cannot be escalated is a terminal failure, and replays as the same one', async () => {
  const refused = await service.escalate('no', { ...command, caseId: 'CASE-101' })
  assert.equal(refused.status, 422)
  assert.equal(refused.body.errorCode, 'CASE_NOT_ESCALATABLE')
  const again = await service.escalate('no', { ...command, caseId: 'CASE-101' })
  assert.equal(again.text, refused.text)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
})

test('a key that is reused for another command is refused, and the record stays', async () => {
  const first = await service.escalate('reused', { ...command, targetQueue: 'TIER_2' })
  const reused = await service.escalate('reused', { ...command, targetQueue: 'BILLING' })
  assert.equal(reused.status, 409)
  assert.equal(reused.headers.get('content-type'), 'application/problem+json')
  assert.equal(reused.body.type, '/problems/idempotency-key-reused')
  assert.equal(reused.body.retryable, false)
  const again = await service.escalate('reused', { ...command, targetQueue: 'TIER_2' })
  assert.deepEqual(again.body, first.body)
})

test('twenty identical requests at once: one escalation, one audit row, one event', async () => {
  const twenty = { ...command, caseId: 'CASE-103' }
  const before = await service.rows()
  const answers = await Promise.all(Array.from({ length: 20 }, () => service.escalate('twenty', twenty)))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
  assert.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1)
  const rows = await service.rows()
  for (const name of ['escalations', 'audit', 'outbox'] as const) assert.equal(rows[name] - before[name], 1, name)
  const next = await service.escalate('after-twenty', { ...twenty, targetQueue: 'BILLING' })
  assert.equal(next.status, 201, next.text)
  assert.equal(numberOf(next), numberOf(answers[0]) + 1)
})

test('the record survives a restart', async () => {
  const first = await service.escalate('restart', { ...command, caseId: 'CASE-104' })
  await service.restart()
  const again = await service.escalate('restart', { ...command, caseId: 'CASE-104' })
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
  const unknown = await service.escalate('bad-input', { ...command, caseId: 'CASE-999' })
  assert.equal(unknown.status, 404)
  assert.equal(unknown.body.errors?.[0]?.field, 'caseId')
  assert.equal((await service.escalate('bad-input', { ...command, targetQueue: 'FRAUD_REVIEW' })).status, 201)
})

test('what no database holds is refused in its field, and what counts are characters', async () => {
  for (const field of ['caseId', 'targetQueue', 'reason']) {
    for (const [text, detail] of [
      ['a\0b', 'contains a NUL character'],
      ['a\ud800', 'contains half a surrogate pair'],
      ['😀'.repeat(2_001), `is longer than ${field === 'reason' ? 2_000 : 100} characters`],
    ]) {
      const answer = await service.escalate('unstorable', { ...command, [field]: text })
      assert.deepEqual([answer.status, answer.body.errors], [400, [{ field, detail }]])
    }
  }
  const longest = { ...command, targetQueue: 'BILLING', reason: '😀'.repeat(2_000) }
  assert.equal((await service.escalate('unstorable', longest)).status, 201)
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

test('a caller that lost the right, the key or the workspace gets nothing of the response', async () => {
  const mine = { ...command, caseId: 'CASE-900' }
  await service.admin('PUT', '/api/admin/workspaces/acme', { name: 'Acme' })
  await service.admin('PUT', '/api/admin/cases/CASE-900', { workspaceId: 'acme', escalatableTo: ['LEGAL_REVIEW'] })
  const { key, keyId } = (await service.admin('POST', '/api/admin/workspaces/acme/keys', { caller: 'ann' })) as {
    key: string
    keyId: string
  }
  const first = await service.escalate('mine', mine, key)
  assert.equal(first.status, 201)

  // Another workspace never meets the record, nor the case.
  assert.equal((await service.escalate('mine', mine)).status, 404)

  await service.admin('PUT', '/api/admin/workspaces/acme/callers/ann/rights', { rights: [] })
  const lost = await service.escalate('mine', mine, key)
  assert.equal(lost.status, 403)
  assert.equal(lost.text.includes('ESC-'), false)
  await service.admin('PUT', '/api/admin/workspaces/acme/callers/ann/rights', { rights: ['escalations'] })
  assert.equal((await service.escalate('mine', mine, key)).text, first.text)

  await service.admin('DELETE', `/api/admin/keys/${keyId}`)
  assert.equal((await service.escalate('mine', mine, key)).status, 401)
})
