import type { Migrations } from '../store.ts'

/** The escalations, beside the ledger's own tables and in the same database, so that all of it commits together. */
const tables = (big: string) => [
  `create table cases (
    tenant text not null,
    id text not null,
    escalatable_to text not null,
    primary key (tenant, id)
  )`,
  // One open escalation per case and queue, whatever keys its callers use: the database says so.
  `create table case_escalations (
    number bigint primary key,
    tenant text not null,
    case_id text not null,
    target_queue text not null,
    reason text,
    created_at text not null,
    unique (tenant, case_id, target_queue)
  )`,
  // Numbers without gaps: a sequence would lose one with every transaction that is rolled back.
  'create table escalation_counter (one integer primary key, last bigint not null)',
  'insert into escalation_counter (one, last) values (1, 0)',
  // The business audit: once per command. Who asked how often is in the access log.
  `create table escalation_audit (
    id text primary key,
    tenant text not null,
    caller text not null,
    action text not null,
    escalation bigint not null,
    at text not null
  )`,
  // Notices for the people of a queue: a row for every event that came.
  `create table escalation_notices (
    id text primary key,
    tenant text not null,
    target_queue text not null,
    case_id text not null,
    escalation_id text not null,
    noticed_at ${big} not null
  )`,
]

export const migrations: Migrations = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types }) => tables(types.integer),
    encrypted: { case_escalations: { reason: 'secret' } },
  },
  // For its sweep.
  { version: 2, oldestCode: 1, up: () => ['create index escalation_audit_by_age on escalation_audit (at)'] },
]
