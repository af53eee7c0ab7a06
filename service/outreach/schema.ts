import type { Migrations } from '../store.ts'
import { counting } from '../workspaces/usage.ts'

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
  'create index outreach_versions_by_age on outreach_versions (created_at)',
  'create index outreach_originals_by_message on outreach_originals (message_id)',
  // Which runs a workspace keeps; looked for now and then, because the engine removes them by itself.
  `create table outreach_runs (
    run_id text primary key,
    workspace_id text not null,
    looked_at ${big} not null
  )`,
  'create index outreach_runs_looked on outreach_runs (looked_at)',
]

/** Versions of sequences are counted, and what a step waits for goes with the message that it waits for. */
const counts = counting({
  table: 'outreach_versions',
  workspace: (row) => `(select workspace_id from outreach_sequences where id = ${row}.sequence_id)`,
  amounts: [{ quota: 'sequences', amount: () => '1' }],
})
const forget = 'delete from outreach_originals where message_id = old.id'
const forgotten = {
  sqlite: [`create trigger outreach_originals_forgotten after delete on messages begin ${forget}; end`],
  postgres: [
    `create function outreach_originals_forgotten() returns trigger language plpgsql as $$
      begin ${forget}; return null; end $$`,
    `create trigger outreach_originals_forgotten after delete on messages
      for each row execute function outreach_originals_forgotten()`,
  ],
}

const runCounts = counting({
  table: 'outreach_runs',
  workspace: (row) => `${row}.workspace_id`,
  amounts: [{ quota: 'runs', amount: () => '1' }],
})

/** Of each run its campaign, whose progress is counted so, and its lead, who may want it to be erased. */
const ofCampaigns = [
  'alter table outreach_runs add column campaign text',
  'alter table outreach_runs add column lead_id text',
  'create index outreach_runs_of_campaign on outreach_runs (campaign) where campaign is not null',
  'create index outreach_runs_of_lead on outreach_runs (lead_id) where lead_id is not null',
]

/** Sequences, beside the runs that the engine keeps. */
export const migrations: Migrations = [
  {
    version: 1,
    oldestCode: 1,
    encrypted: { outreach_sequences: { name: 'lookup' }, outreach_versions: { steps: 'secret' } },
    up: ({ name, types }) => [...tables(types.integer), ...counts[name], ...forgotten[name], ...runCounts[name]],
  },
  { version: 2, oldestCode: 1, up: () => ofCampaigns },
]
