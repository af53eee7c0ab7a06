import type { SqlTx } from 'onceonly'
import type { SearchMetadata } from './metadata.ts'
import type { Entry } from './parse/entry.ts'
import { questionsOf } from './questions.ts'

export const jobStates = ['Uploading', 'Uploaded', 'Parsing', 'Completed', 'Error'] as const
export type JobState = (typeof jobStates)[number]
export type FileStatus = 'waiting' | 'received' | 'parsing' | 'parsed' | 'failed'

export interface Job {
  readonly searchId: string
  readonly workspaceId: string
  readonly state: JobState
  readonly reason: string | null
  /** Of its project when the job was made; null without one. */
  readonly questions: number | null
}

export interface JobFile {
  readonly name: string
  readonly status: FileStatus
  readonly references: number
  readonly brokenCount: number
  readonly broken: readonly BrokenRecord[]
  readonly reason: string | null
}

export type BrokenRecord = Omit<Extract<Entry, { kind: 'broken' }>, 'kind'>

type Query = Pick<SqlTx, 'query'>

export async function jobOf({ query }: Query, searchId: string): Promise<Job | null> {
  const [job] = await query<Job>(
    `select search_id as "searchId", workspace_id as "workspaceId", state, reason, questions
     from import_jobs where search_id = ?`,
    [searchId],
  )
  return job ?? null
}

export async function filesOf({ query }: Query, searchId: string): Promise<readonly JobFile[]> {
  const rows = await query<Omit<JobFile, 'broken'> & { readonly broken: string }>(
    `select name, status, reference_count as "references", broken_count as "brokenCount", broken, reason
     from import_job_files where search_id = ? order by position`,
    [searchId],
  )
  return rows.map((row) => ({ ...row, broken: JSON.parse(row.broken) as BrokenRecord[] }))
}

export interface NewJob extends SearchMetadata {
  readonly searchId: string
  readonly workspaceId: string
}

/** May be called any number of times: the first call makes the job, and all get the same. What it lacks is added. */
export async function getOrCreateJob(tx: Query, job: NewJob, now: number): Promise<Job> {
  const questions = await questionsOf(tx, job.workspaceId, job.projectId)
  await tx.query(
    // The name of a search is kept by the search, and by the saga.
    `insert into import_jobs (search_id, workspace_id, project_id, search_name, state, questions, created_at, changed_at)
     values (?, ?, ?, '', 'Uploading', ?, ?, ?) on conflict (search_id) do update set
       project_id = case import_jobs.project_id when '' then excluded.project_id else import_jobs.project_id end,
       questions = coalesce(import_jobs.questions, excluded.questions)`,
    [job.searchId, job.workspaceId, job.projectId, questions, now, now],
  )
  for (const [position, name] of job.referenceFiles.entries()) {
    await tx.query(
      `insert into import_job_files (search_id, name, position, status) values (?, ?, ?, 'waiting')
       on conflict (search_id, name) do nothing`,
      [job.searchId, name, position],
    )
  }
  const found = await jobOf(tx, job.searchId)
  if (found === null) throw new Error(`The job of ${job.searchId} cannot be found`)
  return found
}

/** Only the first time: answers false, and does nothing, once the job is past its upload. */
export async function markFilesReceived(tx: Query, searchId: string, now: number): Promise<boolean> {
  if (!(await moveJob(tx, searchId, ['Uploading'], 'Uploaded', now))) return false
  await tx.query(`update import_job_files set status = 'received' where search_id = ? and status = 'waiting'`, [
    searchId,
  ])
  return true
}

export async function startParsing(tx: Query, searchId: string, now: number): Promise<void> {
  if (!(await moveJob(tx, searchId, ['Uploaded'], 'Parsing', now))) return
  await tx.query(`update import_job_files set status = 'parsing' where search_id = ? and status = 'received'`, [
    searchId,
  ])
}

export async function completeJob(tx: Query, searchId: string, now: number): Promise<void> {
  await moveJob(tx, searchId, ['Uploaded', 'Parsing'], 'Completed', now)
}

export async function failJob(tx: Query, searchId: string, reason: string, now: number): Promise<void> {
  await moveJob(tx, searchId, ['Uploading', 'Uploaded', 'Parsing'], 'Error', now, reason)
}

async function moveJob(
  { query }: Query,
  searchId: string,
  from: readonly JobState[],
  to: JobState,
  now: number,
  reason: string | null = null,
): Promise<boolean> {
  const moved = await query(
    `update import_jobs set state = ?, reason = ?, changed_at = ?
     where search_id = ? and state in (${from.map(() => '?').join(', ')}) returning search_id`,
    [to, reason, now, searchId, ...from],
  )
  return moved.length > 0
}

/** What became of a file; false when that was known before, or was not asked for. */
export async function settleFile(
  { query }: Query,
  searchId: string,
  { name, status, references, brokenCount, broken, reason }: JobFile,
): Promise<boolean> {
  const settled = await query(
    `update import_job_files set status = ?, reference_count = ?, broken_count = ?, broken = ?, reason = ?
     where search_id = ? and name = ? and status = 'parsing' returning name`,
    [status, references, brokenCount, JSON.stringify(broken), reason, searchId, name],
  )
  return settled.length > 0
}

export async function fileStatus({ query }: Query, searchId: string, name: string): Promise<FileStatus | null> {
  const [row] = await query<{ status: string }>(
    'select status from import_job_files where search_id = ? and name = ?',
    [searchId, name],
  )
  return row === undefined ? null : (row.status as FileStatus)
}

/** Counted before it is read, because a process that ends cannot count afterwards. Null when it is not to be read. */
export async function beginFile({ query }: Query, searchId: string, name: string): Promise<number | null> {
  const [row] = await query<{ beginnings: number }>(
    `update import_job_files set beginnings = beginnings + 1
     where search_id = ? and name = ? and status = 'parsing' returning beginnings`,
    [searchId, name],
  )
  return row === undefined ? null : Number(row.beginnings)
}

export async function endFile({ query }: Query, searchId: string, name: string): Promise<void> {
  await query('update import_job_files set beginnings = beginnings - 1 where search_id = ? and name = ?', [
    searchId,
    name,
  ])
}
