import assert from 'node:assert/strict'
import { createLedger, notDone } from 'onceonly'
import { createEngine, defineRun } from 'onceonly/run'
import type { SqliteStore } from 'onceonly/sqlite'
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
export async function makeEvents({ url, store }: Filled): Promise<void> {
  await send(url, '/case-escalations', 'POST', 'seen-1', { caseId: 'CASE-100', targetQueue: 'BILLING', reason: 'seen' })
  for (const key of ['m-1', 'm-2'])
    await send(url, '/api/messages', 'POST', key, { channel: 'local', message: 'Once', recipientPhone: '+491510002' })
  const started = await send(url, '/api/imports', 'POST', 'i-1', { projectId: 'p', searchName: 's', files: ['a.ris'] })
  const { searchId } = (await started.json()) as { readonly searchId: string }
  await send(url, `/api/imports/${searchId}/files/a.ris`, 'PUT', null, 'TY  - JOUR\nTI  - On retries\nER  - \n')
  const ledger = createLedger({ store, background: false })
  const pay = ledger.operation({ name: 'pay', effect: 'external', onAbandoned: 'hold' })
  await pay.execute({ tenant: 'demo', caller: 'shop', key: 'lost' }, null, () => Promise.reject(new Error('vanished')))
  await ledger.stop()
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
  const engine = await createEngine({ ledger: quietLedger(store), runs: [deliver, charge] })
  const failed = await engine.start(deliver, { runId: 'shop/deliver-1', input: null })
  await assert.rejects(failed.result({ waitMs: 120_000 }))
  await engine.start(charge, { runId: 'shop/charge-1', input: null })
  await engine.stop()
}

/** By SQL: as rows they are made in seconds. */
export async function makeMany({ store }: Filled): Promise<void> {
  const numbers = (most: number) => `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${most})`
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
  await store.sql.query(`INSERT INTO onceonly_outbox_dead (position, partition, number, added_at, bytes, line, id, topic,
      key, headers, body, parked_at, attempts, reason) ${numbers(many.deadLetters)}
    SELECT n, 0, NULL, 1, 2, 'line-' || n, 'dead-' || n, 'Many', NULL, '{}', '{}', 1, 3, 'refused' FROM n`)
}

async function columnsOf(store: SqliteStore, table: string): Promise<readonly string[]> {
  const rows = await store.sql.query<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`)
  return rows.map(({ name }) => name)
}
