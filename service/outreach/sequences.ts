import { randomUUID } from 'node:crypto'
import { DAY, type SqlTx } from 'onceonly'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import { rowSweep, type Sweep } from '../workspaces/retention.ts'
import type { Sequence } from './sequence.ts'
import type { Step } from './step.ts'

interface SequenceRow {
  readonly id: string
  readonly name: string
  readonly version: number
  readonly steps: string
}

interface Asking {
  readonly workspaceId: string
  readonly now: number
  readonly quotas: Quotas
  readonly sql: Pick<Base['sql'], 'secret' | 'lookup'>
}

/**
 * Stores the next version of the sequence of this name. The row of the name is the lock: two edits are two versions.
 * @throws QuotaExceeded
 */
export async function saveSequence(
  { query }: Pick<SqlTx, 'query'>,
  { workspaceId, now, quotas, sql }: Asking,
  { name, steps }: Pick<Sequence, 'name' | 'steps'>,
): Promise<Pick<Sequence, 'id' | 'version'>> {
  await quotas.check({ query }, workspaceId, { sequences: 1 })
  const [row] = await query<{ id: string; version: number }>(
    `insert into outreach_sequences (id, workspace_id, name, version) values (?, ?, ?, 1)
     on conflict (workspace_id, name) do update set version = outreach_sequences.version + 1 returning id, version`,
    [`seq_${randomUUID()}`, workspaceId, sql.lookup(name)],
  )
  if (row === undefined) throw new Error('A sequence was stored, and is not there')
  const { id, version } = row
  await query('insert into outreach_versions (sequence_id, version, steps, created_at) values (?, ?, ?, ?)', [
    id,
    version,
    sql.secret(JSON.stringify(steps)),
    now,
  ])
  return { id, version }
}

/** Runs have a copy of the version that they began with: an older one is only kept for people who look back. */
const SUPERSEDED_MS = 90 * DAY
/** Versions that one step of the sweep removes. */
const VERSIONS = 500

export function versionSweep(base: Base): Sweep {
  const remove = `delete from outreach_versions where (sequence_id, version) in (
    select v.sequence_id, v.version from outreach_versions v join outreach_sequences s on s.id = v.sequence_id
    where v.created_at <= ${base.sql.now} - ? and v.version < s.version order by v.created_at limit ?) returning version`
  const from = { text: 'select min(created_at) from outreach_versions', agoMs: SUPERSEDED_MS }
  return rowSweep(base, 'versions of sequences', remove, { values: [SUPERSEDED_MS], most: VERSIONS, from })
}

/** One version; null where it is not kept any more, or was never there. */
export async function sequenceOf(
  { sql }: Base,
  workspaceId: string,
  id: string,
  version: number,
): Promise<Sequence | null> {
  const [row] = await sql.query<SequenceRow>(
    `select s.id, s.name, v.version, v.steps from outreach_sequences s
     join outreach_versions v on v.sequence_id = s.id and v.version = ?
     where s.workspace_id = ? and s.id = ?`,
    [version, workspaceId, id],
  )
  return row === undefined ? null : stored(row)
}

/** The newest version; null where the workspace has no such sequence. */
export async function newestSequence({ sql }: Base, workspaceId: string, id: string): Promise<Sequence | null> {
  if (!/^seq_[0-9a-f-]{36}$/.test(id)) return null
  const [row] = await sql.query<SequenceRow>(
    `select s.id, s.name, s.version, v.steps from outreach_sequences s
     join outreach_versions v on v.sequence_id = s.id and v.version = s.version
     where s.workspace_id = ? and s.id = ?`,
    [workspaceId, id],
  )
  return row === undefined ? null : stored(row)
}

function stored(row: SequenceRow): Sequence {
  return { ...row, version: Number(row.version), steps: JSON.parse(row.steps) as Step[] }
}
