import { randomUUID } from 'node:crypto'
import type { SqlTx } from 'onceonly'
import type { Base } from '../store.ts'
import type { SequenceCommand } from './parse.ts'
import type { Sequence, Step } from './sequence.ts'

interface SequenceRow {
  readonly id: string
  readonly name: string
  readonly version: number
  readonly steps: string
}

/** Stores the next version of the sequence of this name. The row of the name is the lock: two edits are two versions. */
export async function saveSequence(
  { query }: Pick<SqlTx, 'query'>,
  { workspaceId, now }: { readonly workspaceId: string; readonly now: number },
  { name, steps }: SequenceCommand,
): Promise<Pick<Sequence, 'id' | 'version'>> {
  const [row] = await query<{ id: string; version: number }>(
    `insert into outreach_sequences (id, workspace_id, name, version) values (?, ?, ?, 1)
     on conflict (workspace_id, name) do update set version = outreach_sequences.version + 1 returning id, version`,
    [`seq_${randomUUID()}`, workspaceId, name],
  )
  if (row === undefined) throw new Error('A sequence was stored, and is not there')
  const { id, version } = row
  await query('insert into outreach_versions (sequence_id, version, steps, created_at) values (?, ?, ?, ?)', [
    id,
    version,
    JSON.stringify(steps),
    now,
  ])
  return { id, version }
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
  return row === undefined ? null : { ...row, version: Number(row.version), steps: JSON.parse(row.steps) as Step[] }
}
