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
  // The set of declared files: stored in the storage, announced by it, received by the search.
  `create table import_uploads (
    search_id text not null references import_searches (search_id),
    name text not null,
    position integer not null,
    etag text,
    bytes ${big},
    stored_at ${big},
    received_at ${big},
    primary key (search_id, name)
  )`,
  // Small, whatever the size of the table: where a crash may have left a file that nobody knows of.
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
]

/** The folders and buckets that servers keep uploads in: more than one in use is a mistake. */
const storages = (big: string) => `create table import_storages (id text primary key, seen_at ${big} not null)`

/** Of a bucket that keeps versions: the one that was accepted. */
const fileVersions = 'alter table import_uploads add column version text'

export const migrations = [
  { version: 1, oldestCode: 1, up: { sqlite: tables('integer'), postgres: tables('bigint') } },
  { version: 2, oldestCode: 1, up: { sqlite: [storages('integer')], postgres: [storages('bigint')] } },
  { version: 3, oldestCode: 1, up: { sqlite: [fileVersions], postgres: [fileVersions] } },
] as const
