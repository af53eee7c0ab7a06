import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { demoKey, openedService } from '../../support/service/openapi/opened.ts'

const { service, document, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

async function ask(path: string, key: string | null, body?: unknown, prefer?: string) {
  const response = await fetch(service.url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${demoKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === null ? {} : { 'idempotency-key': key }),
      ...(prefer === undefined ? {} : { prefer }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) as AsyncAnswer }
}

interface AsyncAnswer {
  readonly status?: string
  readonly type?: string
  readonly result?: { readonly status: number; readonly body: unknown }
}

const commands = [
  ['/case-escalations', { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW' }],
  ['/api/messages', { recipientPhone: '+49 151 2345678', recipientName: 'Ann', message: 'Hello' }],
] as const

for (const [path, body] of commands) {
  test(`POST ${path} answers a caller that prefers respond-async with 202, then with the result`, async () => {
    const accepted = await ask(path, `async${path}`, body, 'respond-async')
    assert.equal(accepted.status, 202, accepted.text)
    assert.equal(accepted.json.type, '/problems/request-accepted')
    assert.equal(accepted.headers.get('preference-applied'), 'respond-async')
    assert.ok(accepted.headers.get('x-request-id'))
    const location = accepted.headers.get('location') ?? ''
    const { result } = await until('it has ended', async () => {
      const { status, json, text } = await ask(location, null)
      assert.equal(status, 200, text)
      return json.status === 'in_progress' ? null : json
    })
    const replay = await ask(path, `async${path}`, body)
    assert.deepEqual([replay.status, replay.headers.get('idempotent-replayed')], [201, 'true'], replay.text)
    assert.equal(result?.status, 201)
    // A message is shown as it is when it is asked for; an escalation stays as it was made.
    if (path === '/case-escalations') assert.deepEqual(result?.body, replay.json)
  })

  test(`POST ${path} documents the preference`, () => {
    const operation = document.paths[path]?.['post']
    const parameters = (operation?.parameters ?? []) as readonly { readonly name: string }[]
    assert.ok(parameters.some(({ name }) => name === 'Prefer'))
    const documented = operation?.responses[202] as { readonly headers?: object; readonly content?: object } | undefined
    for (const name of ['Location', 'Preference-Applied', 'Retry-After'])
      assert.ok(name in (documented?.headers ?? {}), name)
    assert.ok('application/problem+json' in (documented?.content ?? {}))
  })
}

test('within the wait the answer is the usual one', async () => {
  const body = { caseId: 'CASE-100', targetQueue: 'TIER_2' }
  const answer = await ask('/case-escalations', 'waits', body, 'respond-async, wait=20')
  assert.deepEqual([answer.status, answer.headers.get('preference-applied')], [201, null], answer.text)
})
