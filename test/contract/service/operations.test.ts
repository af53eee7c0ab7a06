import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Cluster, makeWorkspace, openCluster, type TestServer } from '../../support/service/cluster.ts'

describe('the status of an operation', () => {
  let cluster: Cluster
  let server: TestServer
  before(async () => {
    cluster = await openCluster('sqlite')
    server = cluster.servers[0] as TestServer
  })
  after(() => cluster[Symbol.asyncDispose]())

  /** The id that a client is given in a link; here, from the ledger's own table. */
  async function idOf(operation: string): Promise<string> {
    const text = `select hex(id) as id from onceonly_records where operation = '${operation}' order by fence desc limit 1`
    return String((await cluster.sql<{ id: string }>(text))[0]?.id).toLowerCase()
  }

  test('is shown to the caller that made the request, with the recorded response', async () => {
    const body = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW' }
    const made = await server.post('/case-escalations', body, { key: 'status-1' })
    const id = await idOf('case.escalate')
    const status = await server.get(`/operations/${id}`)
    assert.equal(status.status, 200, status.text)
    assert.deepEqual(
      [status.body['id'], status.body['operation'], status.body.status],
      [id, 'case.escalate', 'succeeded'],
    )
    assert.deepEqual((status.body['result'] as { body: unknown }).body, made.body)
  })

  test('is not found for other callers and for a caller that lost the right', async () => {
    const id = await idOf('case.escalate')
    const stranger = await makeWorkspace(server, 'status-strangers')
    assert.equal((await server.get(`/operations/${id}`, { apiKey: stranger })).status, 404)
    assert.equal((await server.get(`/operations/${id}`, { apiKey: 'unknown-token' })).status, 401)
    await server.admin('PUT', '/workspaces/demo/callers/demo/rights', { rights: ['messages'] })
    const lost = await server.get(`/operations/${id}`)
    await server.admin('PUT', '/workspaces/demo/callers/demo/rights', { rights: ['messages', 'escalations'] })
    assert.equal(lost.status, 404)
    assert.doesNotMatch(lost.text, /ESC-/)
    assert.equal((await server.get(`/operations/${id}`)).status, 200)
  })

  test('of an operator’s request is no business of an API key, whatever its caller is called', async () => {
    const operator = await makeWorkspace(server, 'status-operators', 'operator')
    const response = await fetch(`${server.url}/api/admin/workspaces/status-operators/keys`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer operator-token-of-tests',
        'content-type': 'application/json',
        'idempotency-key': 'status-key',
      },
      body: JSON.stringify({ caller: 'x' }),
    })
    assert.equal(response.status, 201)
    const id = await idOf('workspaces.keys.add')
    assert.match(id, /^[0-9a-f]{32}$/)
    assert.equal((await server.get(`/operations/${id}`, { apiKey: operator })).status, 404)
  })
})
