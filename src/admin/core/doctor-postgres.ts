import type { SqlSeam } from '../../ledger/store/sql.ts'
import { type Finding, finding } from './finding.ts'

export async function postgresFindings(sql: SqlSeam): Promise<Finding[]> {
  const [row = {}] = await sql.query<Readonly<Record<string, unknown>>>(
    `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') AS full_page_writes, current_setting('server_version') AS version,
       pg_is_in_recovery() AS replica, current_setting('max_connections') AS connections,
       current_setting('default_transaction_read_only') AS read_only,
       current_setting('synchronous_standby_names') AS standby_names, current_setting('autovacuum') AS autovacuum,
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
      said('synchronous_commit') !== 'off' && !(said('standby_names') !== '' && said('synchronous_commit') === 'local'),
      `synchronous_commit is ${said('synchronous_commit')}`,
      'danger',
      'An acknowledged claim could be forgotten, and its effect run again: switch it on.',
    ),
    ...(row['replica'] === true ? [] : [await standbyFinding(sql, said('standby_names'))]),
    finding(
      'autovacuum',
      said('autovacuum') === 'on',
      `autovacuum is ${said('autovacuum')}`,
      'warning',
      'Switch it on: removed records keep their place on the disk, and statements become slower.',
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

/** What a promoted standby would lack: nothing that was acknowledged only where commits wait for it. */
async function standbyFinding(sql: SqlSeam, names: string): Promise<Finding> {
  const [row = {}] = await sql.query<Readonly<Record<string, unknown>>>(
    `SELECT count(*) AS standbys, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
       count(*) FILTER (WHERE sync_state IS NULL) AS hidden,
       coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)), 0) AS behind
     FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'`,
  )
  const [standbys, synchronous] = [Number(row['standbys']), Number(row['synchronous'])]
  const behind = `${standbys} standbys follow, ${synchronous} of them synchronously; the last one is ${Number(row['behind'])} bytes behind`
  if (names !== '') {
    const waits = 'No commit is answered until one follows: bring the standby back.'
    const isHidden = Number(row['hidden']) > 0
    return finding('standby', synchronous > 0 || isHidden, behind, 'warning', waits)
  }
  const advice =
    'A failover forgets what the standby has not got, and effects run again: set synchronous_standby_names (with Patroni synchronous_mode), or never promote it.'
  return finding('standby', standbys === 0, standbys === 0 ? 'no standby follows' : behind, 'warning', advice)
}
