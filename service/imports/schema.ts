import type { Migrations } from '../store.ts'
import { counting } from '../workspaces/usage.ts'

/** Times are numbers: milliseconds by the store's clock. */
const tables = (big: string) => [
  // What was asked for. The id is never given out again.
  `create table import_searches (
    search_id text primary key,
    workspace_id text not null,
    project_id text not null,
    search_name text not null,
    created_at ${big} not null,
    saved_at ${big}
  )`,
  `create index import_searches_by_age on import_searches (created_at, search_id)`,
  // The set of declared files: stored in the storage, announced by it, received by the search. The `version` is of a bucket
  // that keeps versions: the one that was accepted.
  `create table import_uploads (
    search_id text not null references import_searches (search_id),
    name text not null,
    position integer not null,
    etag text,
    bytes ${big},
    version text,
    stored_at ${big},
    received_at ${big},
    primary key (search_id, name)
  )`,
  // Small, whatever the size of the table: where a crash may have left a file without a record.
  `create index import_uploads_missing on import_uploads (search_id) where stored_at is null`,
  // What the references of a project are asked; imports only count the questions.
  `create table import_projects (
    workspace_id text not null,
    project_id text not null,
    document text not null,
    primary key (workspace_id, project_id)
  )`,
  // The job is permanent: an event that comes after its saga was swept finds it finished.
  `create table import_jobs (
    search_id text primary key,
    workspace_id text not null,
    project_id text not null,
    search_name text not null,
    state text not null,
    reason text,
    questions integer,
    created_at ${big} not null,
    changed_at ${big} not null
  )`,
  `create table import_job_files (
    search_id text not null references import_jobs (search_id),
    name text not null,
    position integer not null,
    status text not null,
    beginnings integer not null default 0,
    reference_count integer not null default 0,
    broken_count integer not null default 0,
    broken text not null default '[]',
    reason text,
    primary key (search_id, name)
  )`,
  // Numbered as they stand in their file, so that a file that is read twice is stored once.
  `create table import_references (
    search_id text not null,
    file_name text not null,
    number integer not null,
    line integer not null,
    title text not null,
    body text not null,
    primary key (search_id, file_name, number)
  )`,
  // The folders and buckets that servers keep uploads in: more than one in use is a mistake.
  `create table import_storages (id text primary key, seen_at ${big} not null)`,
]

/** How many imports a workspace keeps, and how large their files are, those included that are on their way. */
const counts = [
  counting({
    table: 'import_searches',
    workspace: (row) => `${row}.workspace_id`,
    amounts: [{ quota: 'imports', amount: () => '1' }],
  }),
  counting({
    table: 'import_uploads',
    workspace: (row) => `(select workspace_id from import_searches where search_id = ${row}.search_id)`,
    amounts: [
      {
        quota: 'upload-bytes',
        amount: (row) =>
          `case when ${row}.removed_at is null then coalesce(${row}.bytes, ${row}.promised, 0) else 0 end`,
      },
    ],
    changing: ['bytes', 'promised', 'removed_at'],
  }),
  counting({
    table: 'import_projects',
    workspace: (row) => `${row}.workspace_id`,
    amounts: [{ quota: 'project-bytes', amount: (row) => `octet_length(${row}.document)` }],
    changing: ['document'],
  }),
]

/** When files and imports go: the file first, and some time later everything else. */
const retained = (big: string) => [
  `alter table import_uploads add column promised ${big}`,
  `alter table import_uploads add column removed_at ${big}`,
  // Small, whatever the size of the table: room that was asked for, and not used so far.
  'create index import_uploads_promised on import_uploads (search_id) where promised is not null and stored_at is null',
  'alter table import_jobs add column files_removed integer not null default 0',
  'create index import_jobs_by_age on import_jobs (changed_at)',
  `create index import_jobs_files on import_jobs (changed_at) where state in ('Completed', 'Error') and files_removed = 0`,
]

export const migrations: Migrations = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types }) => tables(types.integer),
    encrypted: {
      import_searches: { search_name: 'secret' },
      import_jobs: { search_name: 'secret' },
      import_projects: { document: 'secret' },
      import_references: { title: 'secret', body: 'secret' },
    },
  },
  // Code that does not know of the counts is counted all the same.
  {
    version: 2,
    oldestCode: 1,
    up: ({ name, types }) => [...retained(types.integer), ...counts.flatMap((count) => count[name])],
  },
]
