import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { upload } from '../../support/service/imports/upload.ts'
import { type Provider, startProvider } from '../../support/service/messages/provider.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

onEveryPlace('retention', (place) => {
  let sms: Provider
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  let folder: string
  before(async () => {
    sms = await startProvider()
    folder = await mkdtemp(join(tmpdir(), 'onceonly-uploads-'))
    const env = {
      ONCEONLY_SWEEP_EVERY_MS: '100',
      // Shorter than an unknown outcome waits for an operator.
      ONCEONLY_RETAIN_MESSAGES_DAYS: '10',
      ONCEONLY_RETAIN_LEADS_DAYS: '100',
      ONCEONLY_RETAIN_AUDIT_DAYS: '400',
      ONCEONLY_RETAIN_BUSINESS_AUDIT_DAYS: '300',
      ONCEONLY_UPLOADS: folder,
      ONCEONLY_TWILIO_URL: `http://AC1:secret@${new URL(sms.url).host}/Accounts/AC1/Messages.json?From=%2B15550100`,
    }
    cluster = await openCluster(place, { processes: 2, env })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await sms[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const count = async (table: string, where = 'true') => {
    const [row] = await cluster.sql<{ n: unknown }>(`select count(*) as n from ${table} where ${where}`)
    return Number(row?.n)
  }
  const used = async () => {
    const rows = await cluster.sql<{ quota: string; used: unknown }>(
      'select quota, sum(used) as used from workspace_usage group by quota',
    )
    return Object.fromEntries(rows.map((row) => [row.quota, Number(row.used)]))
  }

  test('messages go after their end, those without an outcome never', async () => {
    const send = async (recipientPhone: string, message: string, channel: string) =>
      (await one.send({ recipientPhone, message, channel })).body.message?._id ?? ''
    const sent = await send('+4930331', 'an old one', 'local')
    const unknown = await send('+4915177001', 'hang up', 'twilio')
    await cluster.sql(
      `insert into outreach_originals (step_key, message_id) values ('s', '${sent}'), ('t', '${unknown}')`,
    )
    await cluster.advance(11 * DAY)
    const young = await send('+4930331', 'a new one', 'local')
    await until('the old one is gone', async () => (await two.get(`/api/messages/${sent}`)).status === 404)
    assert.equal((await two.get(`/api/messages/${young}`)).body.status, 'sent')
    assert.equal((await two.get(`/api/messages/${unknown}`)).body.status, 'unknown')
    assert.deepEqual((await used())['messages'], 2)
    assert.deepEqual(await cluster.sql('select step_key from outreach_originals'), [{ step_key: 't' }])
    // Its retention begins when an operator has resolved it.
    const resolved = await one.asOperator('POST', `/api/messages/${unknown}/resolve`, { outcome: 'sent' })
    assert.equal(resolved.status, 200, resolved.text)
    await cluster.advance(9 * DAY)
    await send('+4930333', 'the newest', 'local')
    await cluster.advance(2 * DAY)
    await until('only the newest is left', async () => (await count('messages')) === 1)
    assert.equal((await used())['messages'], 1)
    await cluster.advance(11 * DAY)
    await until('no message is left', async () => (await count('messages')) === 0)
    assert.deepEqual([await count('leads'), await count('conversations')], [3, 3])
    // A lead is kept for as long after its last message, whenever it was made.
    await cluster.advance(72 * DAY)
    await until('the oldest is gone', async () => (await count('leads', `phone = '+4915177001'`)) === 0)
    assert.deepEqual([await count('leads'), await count('conversations')], [2, 2])
    await until('the windows are over', async () => (await count('message_originals')) === 0)
  })

  const start = async (files: readonly string[]) => {
    const answer = await one.post('/api/imports', { projectId: 'p', searchName: 's', files })
    assert.equal(answer.status, 201, answer.text)
    return { searchId: String(answer.body['searchId']) }
  }
  const state = async ({ searchId }: { searchId: string }) => (await two.get(`/api/imports/${searchId}`)).body['state']
  /** What is in the folder, beside its own name and what is on its way. */
  const stored = async () => (await readdir(folder)).filter((name) => name !== 'id' && name !== 'unfinished')

  test('files go soon after their import has ended, the import and its references later', async () => {
    const [whole, failed] = [await start(['a.csv']), await start(['a.csv', 'b.csv'])]
    for (const each of [whole, failed]) assert.equal((await upload(one, each, 'a.csv', 'title\nOne\n')).status, 201)
    await until('one is complete', async () => (await state(whole)) === 'Completed')
    await cluster.advance(2 * HOUR)
    await until('one has failed', async () => (await state(failed)) === 'Error')
    const kept = await stored()
    assert.equal(kept.length, 2)
    await cluster.advance(8 * DAY)
    // Still under way when the others go.
    const young = await start(['a.csv'])
    await upload(two, young, 'a.csv', 'title\nTwo\n')
    await until('the files are gone', async () => !(await stored()).some((name) => kept.includes(name)))
    await until('they count no longer', async () => (await used())['upload-bytes'] === 10)
    assert.equal((await stored()).length, 1)
    assert.deepEqual([await state(whole), await state(failed)], ['Completed', 'Error'])
    const again = await upload(one, failed, 'a.csv', 'title\nOne\n')
    assert.deepEqual([again.status, again.body.type], [409, '/problems/import-closed'])
    assert.deepEqual(await count('import_references', `search_id = '${whole.searchId}'`), 1)

    await cluster.advance(83 * DAY)
    const gone = [whole, failed].map(({ searchId }) => `'${searchId}'`).join(', ')
    await until('the jobs are gone', async () => (await count('import_jobs', `search_id in (${gone})`)) === 0)
    for (const table of ['searches', 'uploads', 'job_files', 'references']) {
      assert.equal(await count(`import_${table}`, `search_id in (${gone})`), 0, table)
    }
    assert.equal((await one.get(`/api/imports/${whole.searchId}`)).status, 404)
    assert.equal((await used())['imports'], 1)
  })

  test('versions of a sequence that were superseded long ago go; the newest stays', async () => {
    const store = (template: string) =>
      one.post('/api/sequences', { name: 'Hello', steps: [{ id: 'a', type: 'sms', template }] })
    await store('one')
    const { id } = (await store('two')).body as unknown as { id: string }
    await cluster.advance(91 * DAY)
    await until('the older one is gone', async () => (await count('outreach_versions')) === 1)
    const { status, text } = await two.get(`/api/sequences/${id}`)
    assert.deepEqual([status, /"template":"two"/.test(text)], [200, true], text)
    assert.equal((await used())['sequences'], 1)
  })

  test('runs that the engine has removed, or that never began, count no longer', async () => {
    const lead = (await one.send({ recipientPhone: '+4930777', message: 'Hello', channel: 'local' })).body.leadId
    const stored = await one.post('/api/sequences', { name: 'Runs', steps: [{ id: 'a', type: 'wait', ms: 30 * DAY }] })
    const started = await one.post(`/api/sequences/${stored.body['id']}/runs`, { leadId: lead, runId: 'r' })
    assert.equal(started.status, 201, started.text)
    await cluster.sql(`insert into outreach_runs (run_id, workspace_id, looked_at) values ('never', 'demo', 1)`)
    await until('the one that never began is gone', async () => (await count('outreach_runs')) === 1)
    const lookedAt = async () =>
      (await cluster.sql<{ at: unknown }>('select looked_at as at from outreach_runs'))[0]?.at
    const before = await lookedAt()
    await cluster.advance(2 * DAY)
    await until('it was looked for, and found', async () => Number(await lookedAt()) > Number(before))
    assert.equal((await used())['runs'], 1)
    // As the engine does, each minute, with runs that have ended long ago.
    await cluster.sql('delete from onceonly_runs')
    await cluster.advance(2 * DAY)
    await until('it counts no longer', async () => (await used())['runs'] === 0)
  })

  test('rooms without visitors no longer count', async () => {
    await cluster.sql(`insert into chat_rooms (workspace_id, room, seen_at) values ('demo', 'idle', 1)`)
    await until('it is forgotten', async () => (await count('chat_rooms')) === 0)
    assert.equal((await used())['rooms'], 0)
  })

  test('lines of both audits go at their time, and no other way', async () => {
    const act = async (id: string) => {
      const erased = { action: 'erase', what: 'person', id }
      assert.equal((await one.asOperator('POST', '/api/console/actions', erased)).status, 200)
    }
    const asked = { caseId: 'CASE-103', targetQueue: 'BILLING' }
    assert.equal((await one.post('/case-escalations', asked, { key: 'audited' })).status, 201)
    await act('+49301')
    const lines = await count('onceonly_operator_audit')
    assert.ok(lines >= 2)
    await cluster.advance(301 * DAY)
    await until('the business audit has ended', async () => (await count('escalation_audit')) === 0)
    assert.equal(await count('case_escalations'), 1, 'the escalation stays')
    assert.equal(await count('onceonly_operator_audit'), lines)
    await cluster.advance(100 * DAY)
    await until('the old lines are gone', async () => (await count('onceonly_operator_audit')) === 0)
    await act('+49302')
    for (const text of ['delete from onceonly_operator_audit', "update onceonly_operator_audit set actor = 'x'"])
      await assert.rejects(cluster.sql(text), /only appended to/)
    const shown = await two.console('/retention')
    assert.match(shown.text, /ONCEONLY_RETAIN_AUDIT_DAYS/)
    assert.equal(shown.text.match(/"audit of operators"/g)?.length, 1)
  })
})
