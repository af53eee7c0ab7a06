import assert from 'node:assert/strict'
import { createLedger, final, notDone } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createEngine, defineQueue, defineRun, schedule } from 'onceonly/run'
import type { SqliteStore } from 'onceonly/sqlite'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { until } from '../../../src/testing/until.ts'
import { quietLedger } from '../quiet-ledger.ts'
import { demoKey } from '../service/openapi/opened.ts'

/** As much as a busy month leaves behind. */
export const many = { records: 100_000, runs: 10_000, deadLetters: 1_000 }

interface Filled {
  readonly url: string
  /** The server's own, opened a second time. */
  readonly store: SqliteStore
}

function send(url: string, path: string, method: string, key: string | null, body: unknown): Promise<Response> {
  const isText = typeof body === 'string'
  const headers = {
    authorization: `Bearer ${demoKey}`,
    'content-type': isText ? 'text/plain' : 'application/json',
    ...(key === null ? {} : { 'idempotency-key': key }),
  }
  return fetch(url + path, { method, headers, body: isText ? body : JSON.stringify(body) })
}

/** One of everything that pages show. */
export async function makeEvents(filled: Filled): Promise<void> {
  await makeRequests(filled)
  await makeRecords(filled)
  await makeRuns(filled)
  await makeCampaign(filled)
  await makeRoom(filled)
}

async function makeRequests({ url }: Filled): Promise<void> {
  const escalation = { caseId: 'CASE-100', targetQueue: 'BILLING' }
  await send(url, '/case-escalations', 'POST', 'seen-1', { ...escalation, reason: 'seen' })
  await send(url, '/case-escalations', 'POST', 'seen-1', { ...escalation, reason: 'another one under the same key' })
  for (const key of ['m-1', 'm-2'])
    await send(url, '/api/messages', 'POST', key, { channel: 'local', message: 'Once', recipientPhone: '+491510002' })
  const started = await send(url, '/api/imports', 'POST', 'i-1', { projectId: 'p', searchName: 's', files: ['a.ris'] })
  const { searchId } = (await started.json()) as { readonly searchId: string }
  await send(url, `/api/imports/${searchId}/files/a.ris`, 'PUT', null, 'TY  - JOUR\nTI  - On retries\nER  - \n')
}

async function makeRecords({ store }: Filled): Promise<void> {
  await using ledger = createLedger({ store, background: false })
  const pay = ledger.operation({ name: 'pay', effect: 'external', onAbandoned: 'hold' })
  await pay.execute({ tenant: 'demo', caller: 'shop', key: 'lost' }, null, () => Promise.reject(new Error('vanished')))
  await using inbox = createInbox({ ledger, consumer: 'escalations.notices', background: false })
  const body = { tenant: 'demo', targetQueue: 'BILLING', caseId: 'CASE-1', escalationId: 'ESC-DEAD' }
  const message = { id: 'dead-1', topic: 'CaseEscalated', key: null, sequence: null, headers: {}, deliveries: 1 }
  const refuse = () => Promise.reject(final(new Error('Cannot be handled')))
  await inbox.receive({ ...message, body: JSON.stringify(body) }, refuse)
}

async function makeRuns({ store }: Filled): Promise<void> {
  const deliver = defineRun('deliver', async (run) => {
    await run.step('pack', async () => 'packed')
    return await run.step('send', { retry: { attempts: 1 } }, () => {
      throw notDone(new Error('the door stays shut'))
    })
  })
  const charge = defineRun('charge', (run) =>
    run.step('pay', { semantics: 'once' }, () => {
      throw new Error('the line went dead')
    }),
  )
  const leaf = defineRun('leaf', (run) => run.step('work', async () => 'done'))
  const family = defineRun('family', async (run, _input: readonly string[]) => {
    await run.setAttributes({ customer: 'c-1', urgent: true })
    await run.emit('began', { by: 'Ada' })
    await run.child(leaf, { id: 'first', input: null })
    await run.sleep('rest', 3_600_000)
  })
  const mail = defineQueue('mail', { concurrency: 2, rate: { limit: 100, perMs: 60_000 } })
  const nightly = schedule('nightly', { run: leaf, input: () => null, cron: '0 3 * * *' })
  const engine = await createEngine({
    ledger: quietLedger(store),
    runs: [deliver, charge, leaf, family],
    queues: [mail],
    schedules: [nightly],
  })
  const failed = await engine.start(deliver, { runId: 'shop/deliver-1', input: null })
  await assert.rejects(failed.result({ waitMs: 120_000 }))
  await engine.start(charge, { runId: 'shop/charge-1', input: null })
  // Longer than its box.
  const input = Array.from({ length: 60 }, (_, at) => `line ${at}`)
  await engine.enqueue(family, { queue: mail, key: 'c-1', runId: 'shop/family-1', input })
  const stateOf = async () => (await engine.get('shop/family-1')).state
  await until('the parent sleeps', stateOf, (state) => state === 'sleeping')
  await engine.stop()
}

async function makeCampaign({ url }: Filled): Promise<void> {
  const lead = await send(url, '/api/messages', 'POST', 'm-3', {
    channel: 'local',
    message: 'A lead',
    recipientEmail: 'seen@example.com',
  })
  const { leadId } = (await lead.json()) as { readonly leadId: string }
  const sequence = await send(url, '/api/sequences', 'POST', 's-1', {
    name: 'Seen',
    steps: [{ id: 'pause', type: 'wait', ms: 3_600_000 }],
  })
  const { id: sequenceId } = (await sequence.json()) as { readonly id: string }
  await send(url, '/api/campaigns', 'POST', 'c-1', { campaignId: 'seen', sequenceId, leadIds: [leadId] })
}

async function makeRoom({ url }: Filled): Promise<void> {
  const kept = Promise.withResolvers<void>()
  const client = await createStreamClient({
    room: 'seen',
    regions: ['tokyo'],
    transport: createWebSocketTransport({
      url: (region) => `${url.replace('http', 'ws')}/chat/socket?region=${region}`,
      token: () => demoKey,
    }),
    mode: 'at-least-once',
    from: 'start',
    receiver: { message: () => kept.resolve() },
  })
  await client.send({ by: 'Ada', text: 'Seen' })
  // It comes back from the server.
  await kept.promise
  await client.stop()
}

const numbers = (most: number) => `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${most})`

/** By SQL: as rows they are made in seconds. */
export async function makeMany({ store }: Filled): Promise<void> {
  const names = await columnsOf(store, 'onceonly_records')
  const own: Readonly<Record<string, string>> = {
    seq: '(SELECT max(seq) FROM onceonly_records) + n',
    id: 'randomblob(16)',
    key: `'many-' || n`,
    claim_id: 'lower(hex(randomblob(16)))',
  }
  await store.sql.query(`INSERT INTO onceonly_records (${names.join(', ')}) ${numbers(many.records)}
    SELECT ${names.map((name) => own[name] ?? `r.${name}`).join(', ')} FROM n, onceonly_records AS r WHERE r.key = 'seen-1'`)
  await store.sql.query(
    `INSERT INTO onceonly_ids (id, seq) SELECT id, seq FROM onceonly_records WHERE key LIKE 'many-%'`,
  )
  const runNames = (await columnsOf(store, 'onceonly_runs')).filter((name) => name !== 'id')
  await store.sql.query(`INSERT INTO onceonly_runs (id, ${runNames.join(', ')}) ${numbers(many.runs)}
    SELECT 'shop/many-' || n, ${runNames.join(', ')} FROM n, onceonly_runs WHERE id = 'shop/deliver-1'`)
  await makeLetters({ store }, many.deadLetters)
}

/** Dead letters of the outbox. */
export async function makeLetters({ store }: Pick<Filled, 'store'>, count: number): Promise<void> {
  await store.sql.query(`INSERT INTO onceonly_outbox_dead (position, partition, number, added_at, bytes, line, id, topic,
      key, headers, body, parked_at, attempts, reason) ${numbers(count)}
    SELECT n, 0, NULL, 1, 2, 'line-' || n, 'dead-' || n, 'Many', NULL, '{}', '{}', 1, 3, 'refused' FROM n`)
}

async function columnsOf(store: SqliteStore, table: string): Promise<readonly string[]> {
  const rows = await store.sql.query<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`)
  return rows.map(({ name }) => name)
}
