import { limits, SECOND } from '../../ledger/core/limits.ts'
import type { Store } from '../../ledger/store/port.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import { accessFinding } from './file-access.ts'
import type { Finding } from './finding.ts'

/** A host whose clock is off by more misreads every time it is shown; leases do not depend on it. */
const SKEW_MS = 5 * SECOND
const SLOW_MS = 100

export async function examine(store: Store): Promise<readonly Finding[]> {
  const findings = [await clockFinding(store)]
  if (isRedis(store)) return [...findings, ...(await redisFindings(store))]
  if (store.sql === undefined) return findings
  const own = store.sql.dialect.name === 'sqlite' ? await sqliteFindings(store.sql) : await postgresFindings(store.sql)
  return [...findings, ...own]
}

async function clockFinding(store: Store): Promise<Finding> {
  const begin = performance.now()
  const before = Date.now()
  const now = await store.clock.now({ timeoutMs: limits.storeCallMs })
  const tookMs = Math.round(performance.now() - begin)
  const skewMs = Math.round(now - (before + tookMs / 2))
  const found = `the store answers in ${tookMs} ms; its clock is ${skewMs} ms ${skewMs < 0 ? 'behind' : 'ahead of'} this host`
  const off = Math.abs(skewMs) > SKEW_MS
  const advice = off ? 'Correct the clock of this host or of the store; leases go by the store alone.' : slow(tookMs)
  return { name: 'clock', verdict: advice === null ? 'ok' : 'warning', found: found.replace('-', ''), advice }
}

function slow(tookMs: number): string | null {
  return tookMs > SLOW_MS ? 'Every claim waits for this: bring the store nearer, or find out why it is slow.' : null
}

function finding(name: string, fine: boolean, found: string, verdict: 'warning' | 'danger', advice: string): Finding {
  return { name, verdict: fine ? 'ok' : verdict, found, advice: fine ? null : advice }
}

interface TellsDurability extends Store {
  durability(call: { readonly timeoutMs: number }): Promise<{ readonly warnings: readonly string[] }>
}

/** By its shape, because the store may come from another copy of the package. */
function isRedis(store: Store): store is TellsDurability {
  return 'durability' in store && typeof store.durability === 'function'
}

async function redisFindings(store: TellsDurability): Promise<Finding[]> {
  const { warnings } = await store.durability({ timeoutMs: limits.storeCallMs })
  if (warnings.length === 0) {
    return [{ name: 'durability', verdict: 'ok', found: 'every record is synced, and none is evicted', advice: null }]
  }
  const advice = 'Set appendonly yes, appendfsync always and maxmemory-policy noeviction.'
  return warnings.map((found) => ({ name: 'durability', verdict: 'danger', found, advice }))
}

async function sqliteFindings(sql: SqlSeam): Promise<Finding[]> {
  const pragma = async (name: string) => Object.values((await sql.query(`PRAGMA ${name}`))[0] ?? {})[0]
  const journal = String(await pragma('journal_mode'))
  const synchronous = Number(await pragma('synchronous'))
  const check = String(await pragma('quick_check(1)'))
  return [
    finding(
      'journal',
      journal === 'wal',
      `journal_mode is ${journal}`,
      'danger',
      'Something changed the file; open it with onceonly once.',
    ),
    finding(
      'durability',
      synchronous >= 2,
      `synchronous is ${['off', 'normal', 'full', 'extra'][synchronous] ?? synchronous}`,
      'danger',
      'An acknowledged record could be lost with the power; onceonly sets it to full.',
    ),
    finding(
      'file',
      check === 'ok',
      `quick_check says ${check}`,
      'danger',
      'The file is damaged: stop, and restore a backup.',
    ),
    ...(await filesFinding(sql)),
  ]
}

/** Windows has no modes. */
async function filesFinding(sql: SqlSeam): Promise<readonly Finding[]> {
  const rows = await sql.query<{ readonly name: string; readonly file: string }>('PRAGMA database_list')
  const file = rows.find(({ name }) => name === 'main')?.file ?? ''
  if (file === '' || process.platform === 'win32') return []
  return [await accessFinding('access', [file, `${file}-wal`, `${file}-shm`])]
}

async function postgresFindings(sql: SqlSeam): Promise<Finding[]> {
  const [row = {}] = await sql.query<Readonly<Record<string, unknown>>>(
    `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') AS full_page_writes, current_setting('server_version') AS version,
       pg_is_in_recovery() AS replica, current_setting('max_connections') AS connections,
       current_setting('default_transaction_read_only') AS read_only,
       (SELECT count(*) FROM pg_stat_activity) AS used`,
  )
  const said = (name: string) => String(row[name])
  const used = Number(row['used'])
  const connections = Number(row['connections'])
  return [
    finding(
      'fsync',
      said('fsync') === 'on',
      `fsync is ${said('fsync')}`,
      'danger',
      'Switch it on: a crash of the host loses records.',
    ),
    finding(
      'durability',
      said('synchronous_commit') !== 'off',
      `synchronous_commit is ${said('synchronous_commit')}`,
      'danger',
      'An acknowledged claim could be forgotten, and its effect run again: switch it on.',
    ),
    finding(
      'pages',
      said('full_page_writes') === 'on',
      `full_page_writes is ${said('full_page_writes')}`,
      'danger',
      'Switch it on.',
    ),
    finding(
      'primary',
      row['replica'] !== true && said('replica') !== 't' && said('read_only') === 'off',
      `PostgreSQL ${said('version')}, ${row['replica'] === true ? 'a replica' : 'the primary'}`,
      'danger',
      'Connect to the primary: a replica cannot claim.',
    ),
    finding(
      'connections',
      used < connections * 0.9,
      `${used} of ${connections} connections are used`,
      'warning',
      'Make the pools smaller, or max_connections larger.',
    ),
  ]
}
