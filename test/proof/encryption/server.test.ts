import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { until } from '../../../src/testing/until.ts'
import {
  type Cluster,
  onEveryPlace,
  openCluster,
  type PlaceName,
  type TestServer,
} from '../../support/service/cluster.ts'
import { ended, startImport, upload } from '../../support/service/imports/imports.ts'
import { begin, untilCampaign } from '../../support/service/outreach/campaigns.ts'
import { store } from '../../support/service/outreach/outreach.ts'

const key = (id: string) => `${id}=${randomBytes(32).toString('base64')}`
const k1 = key('k1')
const env = { ONCEONLY_ENCRYPTION_KEYS: k1 }

/** What a thief of the disk, or of a dump, has. */
async function stolen(cluster: Cluster, place: PlaceName): Promise<Buffer> {
  if (place === 'sqlite') return Buffer.concat(filesIn(dirname(cluster.address)))
  const client = new Client({ connectionString: cluster.address })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'public'`,
    )
    const texts: string[] = []
    for (const { name } of rows) {
      const table = await client.query<{ row: string }>(`select t::text as row from ${name} as t`)
      texts.push(...table.rows.map(({ row }) => row))
    }
    return Buffer.from(texts.join('\n'))
  } finally {
    await client.end()
  }
}

function filesIn(folder: string): Buffer[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesIn(path) : [readFileSync(path)]
  })
}

const message = (n: number) => ({
  recipientPhone: `+1555000${1000 + n}`,
  recipientEmail: `person${n}@example.com`,
  message: `Confidential words ${n}`,
})

/** Everything that a thief must not find. */
const secrets = [
  'Confidential words',
  '5550001001',
  'person1@example.com',
  'order-of-ann',
  'my private reason',
  'Secret Title',
  'Hidden abstract',
]

async function work(server: TestServer): Promise<{ messageId: string }> {
  const sent = await server.send(message(1), { key: 'order-of-ann-1' })
  assert.equal(sent.status, 201, sent.text)
  const escalation = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'my private reason' }
  const escalated = await server.post('/case-escalations', escalation, { key: 'order-of-ann-2' })
  assert.equal(escalated.status, 201, escalated.text)
  const started = await startImport(server, ['a.ris'])
  const ris = 'TY  - JOUR\nTI  - Secret Title\nAB  - Hidden abstract\nER  - \n'
  assert.ok((await upload(server, started, 'a.ris', ris)).status < 300)
  assert.equal((await ended(server, started.searchId)).state, 'Completed')
  return { messageId: sent.body.message?._id ?? '' }
}

onEveryPlace('an encrypted server', (place) => {
  test('shows nothing to a thief, answers retries after a crash, and never runs without its keys', async () => {
    await using cluster = await openCluster(place, { env })
    const [server] = cluster.servers as [TestServer]
    const { messageId } = await work(server)
    const bytes = await stolen(cluster, place)
    assert.ok(bytes.byteLength > 10_000)
    for (const secret of secrets) assert.equal(bytes.includes(secret), false, secret)
    await server.kill()

    for (const [wrong, says] of [
      [{ ONCEONLY_ENCRYPTION_KEYS: '' }, /is encrypted, and no keys are configured/],
      [{ ONCEONLY_ENCRYPTION_KEYS: key('k1') }, /The key `k1` is not the one/],
      [{ ONCEONLY_ENCRYPTION_KEYS: key('k9') }, /is encrypted with `k1`/],
      [{ ONCEONLY_ENCRYPTION_KEYS: 'k1=short' }, /has \d bytes for `k1`, not 32/],
    ] as const) {
      await assert.rejects(cluster.add(wrong), says)
    }

    const again = await cluster.add()
    const retried = await again.send(message(1), { key: 'order-of-ann-1' })
    assert.deepEqual([retried.status, retried.body.message?._id], [201, messageId])
    assert.equal(retried.headers.get('idempotent-replayed'), 'true')
    const twin = await again.send(message(1))
    assert.equal(twin.body.duplicateOnly, true, 'the guard knows the content again')
    const other = await again.send(message(2), { key: 'order-of-ann-1' })
    assert.equal(other.body.type?.endsWith('key-reused') || other.status >= 400, true)
    const shown = await again.get(`/api/messages/${messageId}`)
    assert.match(shown.text, /Confidential words 1/)
  })

  test('erases a person and a workspace, and leaves no key free to run again', async () => {
    await using cluster = await openCluster(place, { env })
    const [server] = cluster.servers as [TestServer]
    const { messageId } = await work(server)
    await until(
      'the message is sent',
      () => server.get(`/api/messages/${messageId}`),
      ({ text }) => /"status":"sent"/.test(text),
    )
    const { body: lead } = await server.get('/api/leads')
    const [{ _id: leadId }] = lead['leads'] as [{ readonly _id: string }]
    const steps = [{ id: 'wait', type: 'wait', ms: 3_600_000 }]
    const sequenceId = await store(server, 'Wait', steps)
    await begin(server, { sequenceId, leadIds: [leadId], campaignId: 'erased' })
    await untilCampaign(server, 'erased', 'waits', ({ progress }) => progress['sleeping'] === 1)
    const linesOf = async (run: string) =>
      (await cluster.sql(`select 1 from onceonly_run_steps where run_id like '%/${run}'`)).length
    assert.ok((await linesOf(`erased.${leadId}`)) > 0)
    const act = (given: object) => server.asOperator('POST', '/api/console/actions', given)
    const person = { action: 'erase', what: 'person', id: '+15550001001' }
    const preview = await act({ ...person, preview: true })
    assert.equal(preview.status, 200, preview.text)
    assert.match(preview.text, /"runs":1,"messages":1/)
    assert.equal((await server.get(`/api/messages/${messageId}`)).status, 200, 'a preview changes nothing')
    const erased = await act(person)
    assert.match(erased.text, /"messages":1/)
    assert.equal((await server.get(`/api/messages/${messageId}`)).status, 404)
    assert.equal(await linesOf(`erased.${leadId}`), 0)
    assert.ok((await linesOf('campaign erased')) > 0)

    const whole = await act({ action: 'erase', what: 'workspace', id: 'demo' })
    assert.equal(whole.status, 200, whole.text)
    assert.equal(await linesOf('%'), 0)
    assert.equal((await server.send(message(1), { key: 'order-of-ann-1' })).status, 401, 'its API keys are gone')
    // The same caller of the same workspace, should an operator make them again.
    assert.equal((await server.admin('PUT', '/workspaces/demo', { name: 'Demo' })).status, 200)
    const made = await server.admin('POST', '/workspaces/demo/keys', { caller: 'demo' })
    const apiKey = String(made.body['key'])
    const again = { workspaceId: 'demo', escalatableTo: ['LEGAL_REVIEW'] }
    assert.equal((await server.admin('PUT', '/cases/CASE-100', again)).status, 200)
    const retried = await server.send(message(1), { key: 'order-of-ann-1', apiKey })
    assert.equal(retried.status, 409, retried.text)
    const escalation = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'my private reason' }
    const escalated = await server.post('/case-escalations', escalation, { key: 'order-of-ann-2', apiKey })
    assert.match(escalated.text, /response-not-stored/)
    const audit = await server.console('/audit')
    assert.match(audit.text, /"what":"erase"/)
    const retention = await server.console('/retention')
    assert.match(retention.text, /ONCEONLY_RETAIN_MESSAGES_DAYS/)
  })
})
