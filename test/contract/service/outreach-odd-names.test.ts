import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { demoKey, openedService } from '../../support/service/openapi/opened.ts'

/** What every object has already: a name from outside must neither find it nor change it. */
const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__'] as const

const { service, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json' }
  const text = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(service.url + path, { method, headers, ...text })
  const answer = await response.text()
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${answer}`)
  return JSON.parse(answer) as T
}

interface SeenRun {
  readonly state: string
  readonly steps: readonly { readonly id: string; readonly result: unknown }[]
}

test('steps named like properties of Object work: later steps see their result', async () => {
  const message = { channel: 'local', message: 'Hello', recipientEmail: 'ann@example.com' }
  const { leadId } = await ask<{ leadId: string }>('POST', '/api/messages', message)
  for (const name of NAMES) {
    const hasPhone = { path: 'lead.phone', op: 'exists' }
    const steps = [
      // There is no phone, so the other arm continues below, and that is the result.
      { id: name, type: 'branch', when: hasPhone, then: null },
      { id: 'seen', type: 'branch', when: { path: `results.${name}.taken`, op: 'eq', value: 'else' }, then: 'right' },
      { id: 'wrong', type: 'wait', ms: 0, next: null },
      { id: 'right', type: 'email', template: `It was {{results.${name}.taken}}, not {{results.${name}.name}}` },
    ]
    const { id } = await ask<{ id: string }>('POST', '/api/sequences', { name: `Named ${name}`, steps })
    const { runId } = await ask<{ runId: string }>('POST', `/api/sequences/${id}/runs`, { leadId })
    const run = await until(
      `the run of ${name} has ended`,
      () => ask<SeenRun>('GET', `/api/runs/${runId}`),
      ({ state }) => state !== 'running' && state !== 'sleeping' && state !== 'pending',
    )
    assert.deepEqual(
      run.steps.map((step) => step.id),
      [name, 'seen', 'right'],
      JSON.stringify(run),
    )
    assert.deepEqual(run.steps[0]?.result, { taken: 'else' })
    const { verdict } = await ask<{ verdict: string }>('POST', `/api/runs/${runId}/replay`, {})
    assert.equal(verdict, 'identical')
  }
  assert.equal(({} as Record<string, unknown>)['taken'], undefined)
})

test('a command with such members is refused, and changes no object', async () => {
  const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json' }
  for (const path of ['/case-escalations', '/api/messages', '/api/imports', '/api/sequences']) {
    for (const body of [
      '{"__proto__":{"polluted":true},"name":"x"}',
      '{"constructor":{"prototype":{"polluted":true}},"name":"x"}',
    ]) {
      const response = await fetch(service.url + path, { method: 'POST', headers, body })
      assert.equal(response.status, 400, `${path} ${await response.text()}`)
    }
  }
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
