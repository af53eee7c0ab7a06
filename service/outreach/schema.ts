const tables = (big: string) => [
  // The name is what people edit under: of one name there is one sequence, and `version` is its newest.
  `create table outreach_sequences (
    id text primary key,
    workspace_id text not null,
    name text not null,
    version integer not null,
    unique (workspace_id, name)
  )`,
  `create table outreach_versions (
    sequence_id text not null references outreach_sequences (id),
    version integer not null,
    steps text not null,
    created_at ${big} not null,
    primary key (sequence_id, version)
  )`,
  // The guard found the text of a step sent already: whose result the step waits for, by the key of the step.
  `create table outreach_originals (
    step_key text primary key,
    message_id text not null
  )`,
]

/** Sequences, beside the runs that the engine keeps. */
export const migrations = [
  { version: 1, oldestCode: 1, up: { sqlite: tables('integer'), postgres: tables('bigint') } },
] as const
