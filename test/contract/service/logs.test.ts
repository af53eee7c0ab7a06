import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { scrubbed } from '../../../service/logs.ts'
import { pretty } from '../../../service/logs-pretty.ts'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { ended, start } from '../../support/service/service.ts'

type Line = Readonly<Record<string, unknown>>

describe('the log of a server', () => {
  let cluster: Cluster
  let server: TestServer
  before(async () => {
    cluster = await openCluster('sqlite', { env: { ONCEONLY_LOG_LEVEL: 'trace' } })
    server = cluster.servers[0] as TestServer
  })
  after(() => cluster[Symbol.asyncDispose]())

  /** The access lines of an operation, as soon as there are as many as there were attempts. */
  async function attempts(operation: string, count: number): Promise<readonly Line[]> {
    const lines = () => server.events('http.access').filter((line) => line['operation'] === operation)
    await until(`${count} attempts at ${operation}`, async () => lines().length >= count)
    assert.equal(lines().length, count)
    return lines()
  }

  test('a replayed command is two attempts in the access log, and one command in the audit', async () => {
    const body = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'A reason that must stay secret' }
    for (const key of ['log-escalate', '"log-escalate"']) {
      assert.equal((await server.post('/case-escalations', body, { key })).status, 201)
    }
    const [first, again] = await attempts('case.escalate', 2)
    const expected = {
      level: 'info',
      method: 'POST',
      route: '/case-escalations',
      status: 201,
      workspace: 'demo',
      caller: 'demo',
      operation: 'case.escalate',
    }
    for (const [name, value] of Object.entries(expected))
      assert.deepEqual([first?.[name], again?.[name]], [value, value])
    assert.deepEqual([first?.['replayed'], again?.['replayed']], [false, true])
    assert.deepEqual([first?.['decision'], again?.['decision']], ['first', 'dedup_replay'])
    // One key in two spellings.
    assert.match(String(first?.['keyHash']), /^[0-9a-f]{16}$/)
    assert.equal(first?.['keyHash'], again?.['keyHash'])
    assert.notEqual(first?.['reqId'], again?.['reqId'])
    assert.equal(typeof first?.['durationMs'], 'number')
    const audit = await cluster.sql<{ n: unknown }>('select count(*) as n from escalation_audit')
    assert.equal(Number(audit[0]?.n), 1)
  })

  test('every decision has its word', async () => {
    const command = { caseId: 'CASE-102', targetQueue: 'BILLING' }
    await server.post('/case-escalations', command, { key: 'log-escalate' })
    await server.post('/case-escalations', {}, { key: 'log-bad' })
    const [, , conflict, refused] = await attempts('case.escalate', 4)
    assert.deepEqual([conflict?.['decision'], conflict?.['problem']], ['conflict', 'idempotency-key-reused'])
    assert.deepEqual([refused?.['decision'], refused?.['problem']], ['refused', 'invalid-input'])
    const message = { recipientPhone: '+4915112345678', message: 'A text that must stay secret' }
    await server.send(message)
    await server.send(message)
    const sends = await attempts('messages.send', 2)
    assert.deepEqual(
      sends.map(({ decision }) => decision),
      ['first', 'duplicate'],
    )
    await server.get('/api/leads')
    const [read] = await attempts('leads.list', 1)
    assert.equal(read?.['decision'], null)
  })

  test('what the guard decides, and what goes wrong, are lines of the same log', async () => {
    await until('the guard is heard', async () => server.events('message.api.duplicate_blocked').length > 0)
    const [blocked] = server.events('message.api.duplicate_blocked')
    assert.equal(blocked?.['mode'], 'lock_resolved')
    assert.equal(blocked?.['level'], 'info')
    assert.ok(server.events('ledger.claimed').length > 0)
    assert.equal(server.events('ledger.key_reused')[0]?.['level'], 'warn')
  })

  test('the answer names its request, and lets scripts of other origins see that it is a replay', async () => {
    const answer = await server.get('/api/messages/nothing')
    const [line] = await attempts('messages.get', 1)
    assert.equal(answer.headers.get('x-request-id'), line?.['reqId'])
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /Idempotent-Replayed/)
  })

  test('whatever id a line or an answer has, the console finds what it is about', async () => {
    const found = async (id: unknown) => {
      const { body } = await server.console(`/find?id=${encodeURIComponent(String(id))}`)
      const rows = body['rows'] as readonly Readonly<Record<string, unknown>>[]
      return rows.map(({ kind, page }) => `${String(kind)} ${String(page)}`)
    }
    // The key of one command, by the request id that its client got, and by the record of its line.
    const asked = { caseId: 'CASE-103', targetQueue: 'BILLING' }
    const answer = await server.post('/case-escalations', asked, { key: 'log-find' })
    const requestId = answer.headers.get('x-request-id')
    const [line] = await until(
      'its line',
      async () => server.events('http.access').filter(({ reqId }) => reqId === requestId),
      (lines) => lines.length === 1,
    )
    const page = `/records/${String(line?.['record'])}`
    assert.deepEqual(await found(requestId), [`request ${page}`])
    assert.deepEqual(await found(line?.['record']), [`record ${page}`])
    assert.deepEqual(await found('log-find'), [`record ${page}`])
    assert.deepEqual(await found(answer.body['escalationId']), [`escalation ${page}`])
    // A conflict is a warning of the ledger and a problem in the access log: both have the link.
    const reused = await server.post('/case-escalations', { ...asked, caseId: 'CASE-100' }, { key: 'log-find' })
    assert.equal(reused.status, 409)
    const link = `/console/find?id=${String(line?.['record'])}`
    const links = () => server.lines.filter((each) => each.includes(`"find":"${link}"`)).length
    await until('both lines have the link', async () => links() === 2)
    // A message, by its own id and by the key that its provider got.
    const { body } = await server.send({ recipientPhone: '+4915112345679', message: 'Find me' })
    const id = body.message?._id ?? ''
    const [row] = await cluster.sql<{ effect_key: string }>(`select effect_key from messages where id = '${id}'`)
    for (const each of [id, row?.effect_key]) {
      const [message] = await found(each)
      assert.match(message ?? '', /^message \/records\/[0-9a-f]{32}$/, each)
    }
    // A lead, by its id and by the number that a person gives; a sequence, a campaign and an import.
    const leadId = String(body.leadId)
    for (const each of [leadId, '+4915112345679'])
      assert.match((await found(each)).join(), /^lead \/records\/[0-9a-f]{32}/, each)
    const steps = [{ id: 'wait', type: 'wait', ms: 3_600_000 }]
    const stored = await server.post('/api/sequences', { name: 'To be found', steps })
    const sequenceId = String(stored.body['id'])
    for (const each of [sequenceId, 'To be found'])
      assert.deepEqual(await found(each), [`sequence /runs?attributes=sequence%3D${sequenceId}`])
    const begun = await server.post('/api/campaigns', { campaignId: 'spring', sequenceId, leadIds: [leadId] })
    assert.equal(begun.status, 201, begun.text)
    assert.match((await found('spring')).join(), /^campaign \/campaigns\/[0-9a-f]{32}%2Fcampaign%20spring$/)
    const wanted = { projectId: 'p-find', searchName: 'Found', files: ['a.ris'] }
    const searchId = String((await server.post('/api/imports', wanted, { key: 'log-import' })).body['searchId'])
    await until('its saga has begun', async () =>
      (await found(searchId)).includes(`import /sagas/SearchImportJob/${searchId}`),
    )
    assert.deepEqual(await found('nothing-has-this'), [])
    assert.deepEqual(await found(crypto.randomUUID()), ['request null'], 'it may be a request of another process')
    assert.equal((await server.console('/find')).status, 400)
  })

  test('no key, body, recipient or credential is in any line', async () => {
    const mail = 'logged@example.com'
    await server.send(
      { recipientEmail: mail, message: 'Another text that must stay secret' },
      { key: 'log-secret-key' },
    )
    await server.send({ recipientEmail: mail, message: 'x' }, { apiKey: 'oo_wrong-credential' })
    await server.post('/api/messages', '{"message": "broken text that must stay secret', { key: 'log-secret-key-2' })
    const made = await server.admin('POST', '/workspaces/demo/keys', { caller: 'logged' })
    await attempts('workspaces.keys.add', 1)
    const lines = server.lines.filter((line) => line.startsWith('{'))
    assert.ok(lines.length > 10)
    for (const secret of [
      'must stay secret',
      '4915112345678',
      mail,
      'log-escalate',
      'log-secret-key',
      'oo_wrong-credential',
      server.apiKey,
      'operator-token-of-tests',
      String(made.body['key']),
    ]) {
      const found = lines.find((line) => line.includes(secret))
      assert.equal(found, undefined, `${secret} is in ${found}`)
    }
  })

  test('a client that hangs up is logged as an attempt', async () => {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    const head = [
      'POST /api/messages:batchSend HTTP/1.1',
      `Host: ${hostname}`,
      'Content-Length: 100',
      'Expect: 100-continue',
    ]
    const typed = ['Content-Type: application/json', `Authorization: Bearer ${server.apiKey}`]
    socket.write(`${[...head, ...typed].join('\r\n')}\r\n\r\n{`)
    // The server has seen its head when it asks for the rest.
    await once(socket, 'data')
    socket.destroy()
    const [line] = await attempts('messages.batchSend', 1)
    // A request cut off in the middle is answered, although the client may be gone.
    assert.deepEqual([line?.['status'], line?.['hungUp'], line?.['decision']], [400, true, 'refused'])
  })

  test('the end of a server is logged', async () => {
    const stopping = await cluster.add()
    await stopping.stop()
    assert.equal(stopping.events('server.started').length, 1)
    assert.equal(stopping.events('server.stopping')[0]?.['signal'], 'SIGTERM')
    assert.equal(stopping.events('server.stopped').length, 1)
  })
})

test('an unknown log level stops the start with one line', async () => {
  const { code, err } = await ended(start({ ONCEONLY_LOG_LEVEL: 'loud' }))
  assert.equal(code, 1)
  assert.match(err, /^ONCEONLY_LOG_LEVEL: "loud" is none of trace, .+\n$/)
})

for (const [text, clean] of [
  ['connect postgres://user:secret@db:5432/x', 'connect postgres://[redacted]@db:5432/x'],
  ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted]'],
  ['key oo_AbCdEfGhIjKl was refused', 'key [redacted] was refused'],
  ['(phone)=(+4915112345678) exists', '(phone)=([redacted]) exists'],
  ['(email)=(ann.b@mail.example.com) exists', '(email)=([redacted]) exists'],
  ['at run (file:///srv/app/main.ts:12:7)', 'at run (file:///srv/app/main.ts:12:7)'],
  ['2026-11-15T06:28:34.233Z took 100200 ms', '2026-11-15T06:28:34.233Z took 100200 ms'],
] as const) {
  test(`scrubbed: ${text}`, () => assert.equal(scrubbed(text), clean))
}

test('on a terminal an attempt is one short line, and an error has its trace', () => {
  const time = '2026-11-15T06:28:34.233Z'
  const plain = (line: Parameters<typeof pretty>[0]) => stripVTControlCharacters(pretty(line))
  const access = { level: 'info', time, method: 'POST', route: '/a', status: 201, durationMs: 3.2, decision: 'first' }
  assert.equal(plain(access), '06:28:34 POST /a 201 3.2 ms first')
  assert.equal(plain({ ...access, status: null, decision: null }), '06:28:34 POST /a hung up 3.2 ms')
  const broken = { ...access, method: null, route: null, status: 400, durationMs: null, decision: null }
  assert.equal(plain(broken), '06:28:34 ? ? 400')
  const failed = { level: 'error', time, msg: 'It failed', err: { stack: 'Error: why\n    at x' } }
  assert.equal(plain(failed), '06:28:34 error It failed\nError: why\n    at x')
})
