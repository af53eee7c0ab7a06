import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { createLedger } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { memoryStore } from 'onceonly/memory'
import {
  demoKey,
  hookSecret,
  openedService,
  operatorToken,
  type TestedOperation,
} from '../../../support/service/openapi/opened.ts'

const { service, document, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

const ajv = new Ajv.default({ strict: false })
addFormats.default(ajv)
ajv.addSchema({ $id: 'document', components: document.components })

interface Asked {
  readonly method: string
  /** As in the document. */
  readonly path: string
  readonly values?: Readonly<Record<string, string>>
  readonly query?: string
  readonly key?: string
  readonly body?: unknown
  readonly as?: 'caller' | 'operator' | 'hook' | 'stranger'
}

const tried = new Set<string>()

/** Sends a request and holds its answer to what the document says about it. */
async function ask(
  status: number,
  { method, path, values = {}, query = '', key, body, as = 'caller' }: Asked,
): Promise<unknown> {
  const operation = document.paths[path]?.[method.toLowerCase()]
  assert.ok(operation, `${method} ${path} is not documented`)
  const bearer = { caller: demoKey, operator: operatorToken, hook: hookSecret, stranger: 'unknown-token' }[as]
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
  const response = await fetch(service.url + url + query, {
    method,
    headers: {
      authorization: `Bearer ${bearer}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  assert.equal(response.status, status, text)
  tried.add(operation.operationId)
  return checked(operation, response, text)
}

function checked(operation: TestedOperation, { status, headers }: Response, text: string): unknown {
  const documented = operation.responses[status]
  assert.ok(documented, `${operation.operationId} does not document ${status}`)
  const type = headers.get('content-type')?.split(';')[0] ?? null
  if (documented.content === undefined) {
    assert.equal(text, '', `${operation.operationId} documents no body for ${status}`)
    return null
  }
  const schema = documented.content[type ?? '']?.schema
  assert.ok(schema, `${operation.operationId} does not document ${type} for ${status}`)
  const answer: unknown = type?.startsWith('text/') === true ? text : JSON.parse(text)
  const rooted = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components')) as object
  const fits = ajv.compile(rooted)
  assert.ok(fits(answer), `${operation.operationId} ${status}: ${ajv.errorsText(fits.errors)} in ${text}`)
  return answer
}

function exampleOf(path: string, method: string): unknown {
  return document.paths[path]?.[method]?.requestBody?.content['application/json']?.example
}

test('a schema that does not fit is noticed', () => {
  const operation = document.paths['/case-escalations']?.['post'] as TestedOperation
  const response = new Response(null, { status: 201, headers: { 'content-type': 'application/json' } })
  assert.throws(() => checked(operation, response, '{"escalationId":7}'), /case\.escalate 201: data/)
  assert.throws(() => checked(operation, new Response(null, { status: 418 }), ''), /does not document 418/)
})

test('escalations are answered as documented, and the example is one that works', async () => {
  const command = { method: 'POST', path: '/case-escalations', body: exampleOf('/case-escalations', 'post') }
  const made = (await ask(201, { ...command, key: 'doc-1' })) as { escalationId: string }
  await ask(201, { ...command, key: 'doc-1' })
  await ask(409, { ...command, key: 'doc-2' })
  await ask(409, { ...command, key: 'doc-1', body: { caseId: 'CASE-104', targetQueue: 'BILLING' } })
  await ask(422, { ...command, key: 'doc-3', body: { caseId: 'CASE-101', targetQueue: 'LEGAL_REVIEW' } })
  await ask(404, { ...command, key: 'doc-4', body: { caseId: 'CASE-999', targetQueue: 'BILLING' } })
  await ask(400, { ...command, key: 'doc-5', body: {} })
  await ask(400, command)
  await ask(401, { ...command, key: 'doc-6', as: 'stranger' })
  const read = { method: 'GET', path: '/case-escalations/{id}' }
  await ask(200, { ...read, values: { id: made.escalationId } })
  await ask(404, { ...read, values: { id: 'ESC-9999' } })
  const batch = '/case-escalations:batchCreate'
  await ask(200, { method: 'POST', path: batch, body: exampleOf(batch, 'post') })
  await ask(400, { method: 'POST', path: batch, body: { items: [] } })
})

test('messages are answered as documented', async () => {
  const send = { method: 'POST', path: '/api/messages', body: exampleOf('/api/messages', 'post') }
  const sent = (await ask(201, { ...send, key: 'doc-m-1' })) as { message: Record<string, string>; leadId: string }
  await ask(201, { ...send, key: 'doc-m-1' })
  await ask(200, send)
  await ask(400, { ...send, body: {} })
  await ask(404, { ...send, body: { leadId: 'unknown', message: 'Hi' } })
  await ask(409, { ...send, body: { leadId: sent.leadId, recipientPhone: '+4915100000', message: 'Hi' } })
  const batch = { method: 'POST', path: '/api/messages:batchSend' }
  await ask(200, { ...batch, body: exampleOf(batch.path, 'post') })
  await ask(400, { ...batch, key: 'k', body: exampleOf(batch.path, 'post') })
  await ask(200, { method: 'GET', path: '/api/messages' })
  await ask(200, { method: 'GET', path: '/api/leads' })
  await ask(200, { method: 'GET', path: '/api/messages/{id}', values: { id: sent.message['_id'] ?? '' } })
  await ask(404, { method: 'GET', path: '/api/messages/{id}', values: { id: 'nothing' } })
  const resolve = { method: 'POST', path: '/api/messages/{id}/resolve', as: 'operator' } as const
  const values = { id: sent.message['_id'] ?? '' }
  await ask(200, { ...resolve, values, body: exampleOf(resolve.path, 'post') })
  await ask(409, { ...resolve, values, body: { outcome: 'not_sent' } })
  await ask(400, { ...resolve, values, body: {} })
  await ask(404, { ...resolve, values: { id: 'nothing' }, body: { outcome: 'sent' } })
  await ask(401, { ...resolve, as: 'stranger', values, body: { outcome: 'sent' } })
  const conversation = { id: sent.message['conversationId'] ?? '' }
  await ask(200, { method: 'GET', path: '/api/conversations/{id}', values: conversation })
})

test('the console is answered as documented', async () => {
  const session = { method: 'POST', path: '/api/console/session', as: 'operator' } as const
  await ask(200, { ...session, body: { token: operatorToken, name: 'ada' } })
  await ask(401, { ...session, body: { token: 'wrong' } })
  await ask(400, { ...session, body: {} })
  await ask(403, { ...session, as: 'stranger', body: { token: operatorToken } })
  await ask(204, { method: 'DELETE', path: '/api/console/session', as: 'operator' })
  const act = { method: 'POST', path: '/api/console/actions', as: 'operator' } as const
  await ask(200, { ...act, body: exampleOf(act.path, 'post') })
  await ask(400, { ...act, body: { action: 'nonsense' } })
  await ask(404, { ...act, body: { action: 'run.cancel', runId: 'unknown' } })
  await ask(403, { ...act, as: 'stranger', body: { action: 'sweep' } })
})

test('imports are answered as documented', async () => {
  const start = { method: 'POST', path: '/api/imports', body: exampleOf('/api/imports', 'post') }
  const started = (await ask(201, { ...start, key: 'doc-i-1' })) as { searchId: string; uploads: { name: string }[] }
  await ask(201, { ...start, key: 'doc-i-1' })
  await ask(400, { ...start, body: {} })
  const { searchId } = started
  const name = started.uploads[0]?.name ?? ''
  const put = { method: 'PUT', path: '/api/imports/{searchId}/files/{name}', body: 'title' }
  await ask(201, { ...put, values: { searchId, name } })
  await ask(200, { ...put, values: { searchId, name } })
  await ask(409, { ...put, values: { searchId, name }, body: 'other' })
  await ask(404, { ...put, values: { searchId, name: 'nothing' } })
  const address = { method: 'GET', path: '/api/imports/{searchId}/files/{name}/upload' }
  await ask(200, { ...address, values: { searchId, name }, query: '?bytes=3' })
  await ask(400, { ...address, values: { searchId, name } })
  await ask(404, { ...address, values: { searchId: 'nothing', name } })
  const read = { method: 'GET', path: '/api/imports/{searchId}' }
  await ask(200, { ...read, values: { searchId } })
  await ask(404, { ...read, values: { searchId: 'nothing' } })
  const references = { method: 'GET', path: '/api/imports/{searchId}/references' }
  await ask(200, { ...references, values: { searchId } })
  await ask(404, { ...references, values: { searchId: 'nothing' } })
  const project = { method: 'PUT', path: '/api/projects/{projectId}', values: { projectId: 'p' } }
  await ask(200, { ...project, body: exampleOf(project.path, 'put') })
  await ask(400, { ...project, body: {} })
  const hook = { method: 'POST', path: '/hooks/s3', as: 'hook' } as const
  const notice = (key: string) => ({
    Records: [{ eventName: 'ObjectCreated:Put', s3: { bucket: { name: 'b' }, object: { key, eTag: 'e' } } }],
  })
  await ask(200, { ...hook, body: notice(`${searchId}/${name}`) })
  await ask(409, { ...hook, body: notice(`${searchId}/${started.uploads[1]?.name}`) })
  await ask(404, { ...hook, body: exampleOf('/hooks/s3', 'post') })
  await ask(400, { ...hook, body: {} })
  await ask(401, { ...hook, body: {}, as: 'stranger' })
})

test('operators are answered as documented', async () => {
  const as = 'operator'
  const example = (path: string, method: string) => ({ path, body: exampleOf(path, method), as }) as const
  const workspace = '/api/admin/workspaces/{id}'
  await ask(200, { method: 'PUT', ...example(workspace, 'put'), values: { id: 'doc' } })
  await ask(400, { method: 'PUT', path: workspace, as, values: { id: 'doc' }, body: {} })
  const keys = { method: 'POST', ...example(`${workspace}/keys`, 'post'), values: { id: 'doc' }, key: 'doc-k' } as const
  const made = (await ask(201, keys)) as { keyId: string }
  assert.deepEqual(await ask(201, keys), { keyId: made.keyId, key: null })
  await ask(404, { ...keys, key: 'doc-k-2', values: { id: 'nowhere' } })
  const rights = `${workspace}/callers/{caller}/rights`
  await ask(200, { method: 'PUT', ...example(rights, 'put'), values: { id: 'doc', caller: 'billing' } })
  await ask(200, { method: 'PUT', ...example('/api/admin/cases/{id}', 'put'), values: { id: 'CASE-7' } })
  const remove = { method: 'DELETE', path: '/api/admin/keys/{keyId}', values: { keyId: made.keyId }, as } as const
  await ask(204, remove)
  await ask(404, remove)
  await ask(401, { ...remove, as: 'caller' })
  const lock = { path: '/api/admin/guard/locks/{hash}', as } as const
  const hash = await someLock()
  await ask(200, { method: 'GET', ...lock, values: { hash } })
  await ask(204, { method: 'DELETE', ...lock, values: { hash } })
  await ask(404, { method: 'GET', ...lock, values: { hash: '0'.repeat(64) } })
  await ask(200, { method: 'GET', path: '/api/admin/unknowns', as })
  await ask(200, { method: 'PUT', ...example('/api/admin/test-clock', 'put') })
})

/** A lock whose hash the test can compute is made by a send of its own. */
async function someLock(): Promise<string> {
  const body = { recipientPhone: '+4915177777', message: 'To be released' }
  await ask(201, { method: 'POST', path: '/api/messages', body })
  await using ledger = createLedger({ store: memoryStore() })
  const guard = createGuard<null>({
    ledger,
    name: 'messages',
    identity: () => ['demo', body.recipientPhone, null, body.message],
  })
  return guard.hashOf(null)
}

test('outreach is answered as documented, and the example is one that works', async () => {
  const body = { recipientEmail: 'outreach@example.com', message: 'A lead' }
  const { leadId } = (await ask(201, { method: 'POST', path: '/api/messages', body })) as { leadId: string }
  const sequences = { method: 'POST', path: '/api/sequences' }
  const example = exampleOf(sequences.path, 'post') as { steps: object[] }
  const stored = (await ask(201, { ...sequences, body: example, key: 'doc-s-1' })) as { id: string }
  await ask(201, { ...sequences, body: example, key: 'doc-s-1' })
  await ask(400, { ...sequences, body: { name: 'Nothing', steps: [] } })
  const sequence = { values: { id: stored.id } }
  await ask(200, { method: 'GET', path: '/api/sequences/{id}', ...sequence })
  await ask(404, { method: 'GET', path: '/api/sequences/{id}', values: { id: 'seq_none' } })
  const runs = { method: 'POST', path: '/api/sequences/{id}/runs', ...sequence }
  const { runId } = (await ask(201, { ...runs, body: { leadId } })) as { runId: string }
  await ask(404, { ...runs, body: { leadId: 'unknown' } })
  await ask(400, { ...runs, body: {} })
  const run = { values: { id: runId } }
  await ask(200, { method: 'GET', path: '/api/runs/{id}', ...run })
  await ask(404, { method: 'GET', path: '/api/runs/{id}', values: { id: 'none' } })
  await ask(200, { method: 'GET', path: '/api/runs' })
  const replay = { method: 'POST', path: '/api/runs/{id}/replay', ...run }
  await ask(200, { ...replay, body: exampleOf(replay.path, 'post') })
  await ask(400, { ...replay, body: { dryRun: 'no' } })
  const edited = { ...example, steps: example.steps.toReversed().filter((step) => 'template' in step) }
  await ask(201, { ...sequences, body: edited })
  await ask(409, { ...replay, body: { dryRun: false } })
  const cancel = { method: 'POST', path: '/api/runs/{id}/cancel', ...run }
  await ask(200, cancel)
  await ask(404, { ...cancel, values: { id: 'none' } })
  const resolve = { method: 'POST', path: '/api/runs/{id}/steps/{key}/resolve' }
  await ask(409, { ...resolve, values: { id: runId, key: 'none' }, body: exampleOf(resolve.path, 'post') })
})

test('campaigns are answered as documented', async () => {
  const body = { recipientEmail: 'campaign@example.com', message: 'A lead' }
  const { leadId } = (await ask(201, { method: 'POST', path: '/api/messages', body })) as { leadId: string }
  const steps = [{ id: 'wait', type: 'wait', ms: 3_600_000 }]
  const stored = await ask(201, { method: 'POST', path: '/api/sequences', body: { name: 'Campaign', steps } })
  const { id: sequenceId } = stored as { id: string }
  const campaigns = { method: 'POST', path: '/api/campaigns' }
  const example = exampleOf(campaigns.path, 'post') as object
  const made = await ask(201, { ...campaigns, body: { ...example, sequenceId }, key: 'doc-c-1' })
  const { campaignId } = made as { campaignId: string }
  await ask(201, { ...campaigns, body: { ...example, sequenceId }, key: 'doc-c-1' })
  await ask(404, { ...campaigns, body: example })
  await ask(404, { ...campaigns, body: { sequenceId, leadIds: ['lead_none'] } })
  await ask(409, { ...campaigns, body: { sequenceId, leadIds: [leadId], campaignId } })
  await ask(400, { ...campaigns, body: {} })
  const campaign = { values: { id: campaignId } }
  await ask(200, { method: 'GET', path: '/api/campaigns' })
  await ask(200, { method: 'GET', path: '/api/campaigns/{id}', ...campaign })
  const absent = { values: { id: 'none' } }
  await ask(404, { method: 'GET', path: '/api/campaigns/{id}', ...absent })
  await ask(404, { method: 'GET', path: '/api/campaigns/{id}/events', ...absent })
  await ask(404, { method: 'GET', path: '/api/runs/{id}/events', ...absent })
  const replay = { method: 'POST', path: '/api/campaigns/{id}/replay' }
  await ask(200, { ...replay, ...campaign, body: exampleOf(replay.path, 'post') })
  const cancel = { method: 'POST', path: '/api/campaigns/{id}/cancel' }
  await ask(200, { ...cancel, ...campaign })
  await ask(404, { ...cancel, ...absent })
  const resume = { method: 'POST', path: '/api/campaigns/{id}/resume' }
  await ask(200, { ...resume, ...campaign })
  await ask(409, { ...resume, ...campaign })
  await ask(200, { ...cancel, ...campaign })
  // It has ended, and so has its stream.
  await ask(200, { method: 'GET', path: '/api/campaigns/{id}/events', ...campaign })
})

test('the chat is answered as documented', async () => {
  await ask(200, { method: 'GET', path: '/chat/demo', as: 'stranger' })
  await ask(200, { method: 'GET', path: '/api/chat/regions' })
  await ask(401, { method: 'GET', path: '/api/chat/regions', as: 'stranger' })
  const region = { method: 'PUT', path: '/api/chat/regions/{region}/link' }
  await ask(200, { ...region, values: { region: 'tokyo' }, body: exampleOf(region.path, 'put') })
  await ask(404, { ...region, values: { region: 'atlantis' }, body: exampleOf(region.path, 'put') })
  await ask(400, { ...region, values: { region: 'tokyo' }, body: { state: 'broken' } })
  const client = { method: 'PUT', path: '/api/chat/clients/{client}/link', values: { client: 'ann' } }
  await ask(200, { ...client, body: exampleOf(client.path, 'put') })
  await ask(400, { ...client, body: { delayMs: -1 } })
  for (const kind of ['messages', 'shiviz']) {
    const path = `/api/chat/rooms/{room}/${kind}`
    await ask(200, { method: 'GET', path, values: { room: 'lobby' } })
    await ask(400, { method: 'GET', path, values: { room: 'no room' } })
  }
})

test('the server itself is answered as documented', async () => {
  for (const path of ['/healthz', '/readyz', '/openapi.json']) await ask(200, { method: 'GET', path })
  await ask(404, { method: 'GET', path: '/operations/{id}', values: { id: '0'.repeat(32) } })
})

test('no operation was left out', () => {
  const all = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((each) => each.operationId))
  assert.deepEqual(
    all.filter((id) => !tried.has(id)),
    [],
  )
})
