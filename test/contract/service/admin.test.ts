import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'

/** A secret as it is, and as it looks inside of any text in base64: wherever it begins there, its middle is one of three. */
function spellingsOf(secret: string): readonly string[] {
  const encoded = [0, 1, 2].map((shift) =>
    Buffer.from(' '.repeat(shift) + secret)
      .toString('base64')
      .slice(4, -4),
  )
  return [secret, ...encoded]
}

/** Everything that an operator sends may be sent again. */
onEveryPlace('requests of operators', (place) => {
  let cluster: Cluster
  let servers: readonly TestServer[]
  before(async () => {
    cluster = await openCluster(place, { processes: 2 })
    servers = cluster.servers
  })
  after(() => cluster[Symbol.asyncDispose]())

  /** With a key, as `admin` cannot: answers the body, and whether it is a replay. */
  async function addKey(server: TestServer, workspace: string, key: string, caller = 'robot') {
    const response = await fetch(`${server.url}/api/admin/workspaces/${workspace}/keys`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer operator-token-of-tests',
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify({ caller }),
    })
    const body = (await response.json()) as { keyId?: string; key?: string | null; type?: string }
    return { status: response.status, replayed: response.headers.get('idempotent-replayed') === 'true', body }
  }

  async function keysOf(caller: string): Promise<readonly string[]> {
    const rows = await cluster.sql<{ id: string }>(`select id from api_keys where caller = '${caller}'`)
    return rows.map(({ id }) => id)
  }

  test('a retry makes no second API key, and shows no secret', async () => {
    const [one, two] = servers as [TestServer, TestServer]
    const first = await addKey(one, 'demo', 'keys-1')
    const again = await addKey(two, 'demo', 'keys-1')
    assert.deepEqual([first.status, first.replayed], [201, false])
    assert.deepEqual([again.status, again.replayed], [201, true])
    assert.deepEqual(again.body, { keyId: first.body.keyId, key: null })
    assert.deepEqual(await keysOf('robot'), [first.body.keyId])
    // The key of the first response works. A client that lost that response can revoke the key by its id.
    const apiKey = String(first.body.key)
    assert.equal((await two.get('/api/leads', { apiKey })).status, 200)
    assert.equal((await one.admin('DELETE', `/keys/${first.body.keyId}`)).status, 204)
    assert.equal((await two.get('/api/leads', { apiKey })).status, 401)
  })

  test('twenty concurrent requests make one key, and one response contains it', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => addKey(servers[at % 2] as TestServer, 'demo', 'keys-20', 'twenty')),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
    assert.equal(new Set(answers.map(({ body }) => body.keyId)).size, 1)
    assert.equal(answers.filter(({ body }) => typeof body.key === 'string').length, 1)
    assert.equal((await keysOf('twenty')).length, 1)
  })

  test('the secret is in no table', async () => {
    const [one] = servers as [TestServer]
    const { body } = await addKey(one, 'demo', 'keys-secret', 'secretive')
    const records = await cluster.sql('select * from onceonly_records')
    assert.ok(records.length > 0)
    const written = JSON.stringify(records, (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
    )
    assert.ok(written.includes(String(body.keyId)))
    for (const spelling of spellingsOf(String(body.key))) assert.ok(!written.includes(spelling), spelling)
  })

  test('the key belongs to its workspace and its command', async () => {
    const [one, two] = servers as [TestServer, TestServer]
    await one.admin('PUT', '/workspaces/others', { name: 'Others' })
    const here = await addKey(one, 'demo', 'keys-scope', 'scoped')
    const there = await addKey(two, 'others', 'keys-scope', 'scoped')
    assert.notEqual(there.body.keyId, here.body.keyId)
    const reused = await addKey(two, 'demo', 'keys-scope', 'another-caller')
    assert.deepEqual([reused.status, reused.body.type], [409, '/problems/idempotency-key-reused'])
    const nowhere = await addKey(one, 'nowhere', 'keys-scope', 'scoped')
    assert.equal(nowhere.status, 404)
    // Without an idempotency key every request makes an API key.
    const keyless = [1, 2].map(() => one.admin('POST', '/workspaces/demo/keys', { caller: 'keyless' }))
    assert.equal(new Set((await Promise.all(keyless)).map(({ body }) => body['keyId'])).size, 2)
  })

  test('names that no database holds are refused, wherever they stand', async () => {
    const [one] = servers as [TestServer]
    for (const [method, path, body, field] of [
      ['PUT', '/workspaces/a%00b', { name: 'x' }, 'id'],
      ['PUT', '/workspaces/nul', { name: 'x\0' }, 'name'],
      ['POST', '/workspaces/a%00b/keys', { caller: 'x' }, 'id'],
      ['POST', '/workspaces/demo/keys', { caller: 'x\0' }, 'caller'],
      ['PUT', '/workspaces/demo/callers/a%00b/rights', { rights: [] }, 'caller'],
      ['PUT', '/workspaces/a%00b/callers/a/rights', { rights: [] }, 'id'],
      ['PUT', '/cases/C%00', { workspaceId: 'demo', escalatableTo: [] }, 'id'],
      ['PUT', '/cases/C', { workspaceId: 'de\0mo', escalatableTo: [] }, 'workspaceId'],
      ['PUT', '/cases/C', { workspaceId: 'demo', escalatableTo: ['a\0'] }, 'escalatableTo'],
      ['DELETE', '/keys/key_%00', undefined, 'keyId'],
    ] as const) {
      const answer = await one.admin(method, path, body)
      const fields = answer.body.errors?.map((error) => error.field)
      assert.deepEqual([answer.status, fields], [400, [field]], `${method} ${path}`)
    }
  })

  test('what is put twice is there once, and what is removed stays removed', async () => {
    const [one, two] = servers as [TestServer, TestServer]
    const both = <T>(ask: (server: TestServer) => Promise<T>) => Promise.all([one, two, one, two].map(ask))
    const puts = [
      ['/workspaces/twice', { name: 'Twice' }],
      ['/cases/CASE-TWICE', { workspaceId: 'demo', escalatableTo: ['BILLING'] }],
      ['/workspaces/demo/callers/twice/rights', { rights: ['messages'] }],
    ] as const
    for (const [path, body] of puts) {
      const answers = await both((server) => server.admin('PUT', path, body))
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]), path)
      assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    }
    for (const [table, condition] of [
      ['workspaces', "id = 'twice'"],
      ['cases', "id = 'CASE-TWICE'"],
      ['caller_rights', "caller = 'twice'"],
    ]) {
      const [row] = await cluster.sql<{ n: unknown }>(`select count(*) as n from ${table} where ${condition}`)
      assert.equal(Number(row?.n), 1, table)
    }
    const { body } = await addKey(one, 'demo', 'keys-gone', 'gone')
    const gone = await both((server) => server.admin('DELETE', `/keys/${body.keyId}`))
    const statuses = gone.map(({ status }) => status)
    assert.deepEqual(
      statuses.toSorted((a, b) => a - b),
      [204, 404, 404, 404],
    )
  })
})
