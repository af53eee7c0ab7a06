import { limits, SECOND } from '../../ledger/core/limits.ts'
import type { Store } from '../../ledger/store/port.ts'
import type { RoomDialect, SqlSeam } from '../../ledger/store/sql.ts'
import { postgresFindings } from './doctor-postgres.ts'
import { accessFinding } from './file-access.ts'
import { type Finding, finding } from './finding.ts'

/** A host whose clock is off by more misreads every time it is shown; leases do not depend on it. */
const SKEW_MS = 5 * SECOND
const SLOW_MS = 100

export async function examine(store: Store): Promise<readonly Finding[]> {
  const findings = [await clockFinding(store)]
  if (isRedis(store)) return [...findings, ...(await redisFindings(store))]
  if (store.sql === undefined) return findings
  return [...findings, ...(await databaseFindings[store.sql.dialect.name](store.sql))]
}

const databaseFindings: Readonly<Record<RoomDialect['name'], (sql: SqlSeam) => Promise<readonly Finding[]>>> = {
  sqlite: sqliteFindings,
  postgres: postgresFindings,
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

interface TellsDurability extends Store {
  durability(call: { readonly timeoutMs: number }): Promise<{
    readonly risks: readonly Pick<Finding, 'found' | 'advice' | 'verdict'>[]
  }>
}

/** By its shape, because the store may come from another copy of the package. */
function isRedis(store: Store): store is TellsDurability {
  return 'durability' in store && typeof store.durability === 'function'
}

async function redisFindings(store: TellsDurability): Promise<Finding[]> {
  const { risks } = await store.durability({ timeoutMs: limits.storeCallMs })
  if (risks.length === 0) {
    return [{ name: 'durability', verdict: 'ok', found: 'every record is synced, and none is evicted', advice: null }]
  }
  return risks.map((risk) => ({ name: 'durability', ...risk }))
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
