import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../config.ts'
import { createQuotas, QuotaExceeded } from './quotas.ts'

function open(env: Readonly<Record<string, string>>, used: Record<string, number>) {
  const at = { ms: 0 }
  let asked = 0
  const quotas = createQuotas(readConfig(env), () => at.ms)
  const query = async <Row>() => {
    asked++
    return Object.entries(used).map(([quota, n]) => ({ quota, used: String(n) })) as Row[]
  }
  const check = (wanted: Parameters<typeof quotas.check>[2]) => quotas.check({ query }, 'w', wanted)
  return { at, used, check, quotas, asked: () => asked }
}

test('a workspace far from its limits is asked about once a second, one near them each time', async () => {
  const { at, used, check, asked } = open({ ONCEONLY_QUOTA_MESSAGES: '100000' }, { messages: 10 })
  for (let n = 0; n < 5; n++) await check({ messages: 1 })
  assert.equal(asked(), 1)
  // Many at once are nearer than one.
  await check({ messages: 10 })
  assert.equal(asked(), 2)
  at.ms += 1_000
  used['messages'] = 45_000
  for (let n = 0; n < 3; n++) await check({ messages: 1 })
  assert.equal(asked(), 5)
})

test('the refusal names the quota that is exceeded, how much is used, and the limit', async () => {
  const { check } = open({ ONCEONLY_QUOTA_MESSAGE_BYTES: '100' }, { messages: 3, 'message-bytes': 90 })
  await check({ messages: 1, 'message-bytes': 10 })
  await assert.rejects(check({ messages: 1, 'message-bytes': 11 }), (error) => {
    assert.ok(error instanceof QuotaExceeded)
    assert.deepEqual(error.problem.quota, { name: 'message-bytes', limit: 100, used: 90 })
    return true
  })
})

test('a place that is given back twice is free once', () => {
  const { quotas } = open({ ONCEONLY_QUOTA_UPLOADS: '2' }, {})
  const first = quotas.enter('uploads', 'w')
  quotas.enter('uploads', 'w')
  assert.throws(() => quotas.enter('uploads', 'w'), QuotaExceeded)
  for (let times = 0; times < 2; times++) first[Symbol.dispose]()
  quotas.enter('uploads', 'w')
  assert.ok(quotas.full('uploads', 'w') instanceof QuotaExceeded)
  assert.equal(quotas.full('uploads', 'another'), null)
})
