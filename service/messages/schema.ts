import type { Migrations } from '../store.ts'
import { counting } from '../workspaces/usage.ts'

const leads = (big: string) => [
  // Two nulls are different to a unique index, so a lead without a phone or without an e-mail address is no rival.
  `create table leads (
    id text primary key,
    workspace_id text not null,
    phone text,
    email text,
    ghl_contact_id text,
    ghl_location_id text,
    hs_contact_id text,
    hs_portal_id text,
    created_at ${big} not null,
    unique (workspace_id, phone),
    unique (workspace_id, email)
  )`,
  'create index leads_by_age on leads (workspace_id, created_at, id)',
  `create table conversations (
    id text primary key,
    workspace_id text not null,
    phone text,
    lead_id text not null references leads (id),
    created_at ${big} not null,
    unique (workspace_id, phone)
  )`,
  'create unique index conversations_of_mail on conversations (lead_id) where phone is null',
]

/** What the worker looks after. */
export const UNDER_WAY = `status in ('queued', 'sending', 'unknown')`

const messages = (big: string) => [
  /*
   * `lock_claim` is the claim that the message was accepted under: an attempt that comes after a crash finds the message
   * as the original of its content, and knows it by this claim. `key_claim` is the same for an Idempotency-Key. `effect_key` is what a
   * provider knows the message by, and `status_at` is the store's time of the status. An e-mail without a `subject` has its
   * first line instead.
   */
  `create table messages (
    id text primary key,
    workspace_id text not null,
    lead_id text not null references leads (id),
    conversation_id text not null references conversations (id),
    recipient_phone text,
    recipient_email text,
    body text not null,
    subject text,
    channel text not null,
    attachments text,
    status text not null,
    provider_message_id text,
    error text,
    new_lead integer not null,
    effect_key text not null,
    lock_claim text,
    key_claim text,
    lock_hash text not null,
    created_at ${big} not null,
    status_at ${big} not null,
    due_at ${big},
    sent_at ${big}
  )`,
  'create index messages_by_age on messages (workspace_id, created_at, id)',
  'create index messages_by_lead on messages (lead_id, created_at, id)',
  'create index messages_by_conversation on messages (conversation_id, created_at, id)',
  // Without the messages that have none, which are most of them.
  'create unique index messages_by_key_claim on messages (key_claim) where key_claim is not null',
  // Small, whatever the size of the table: only what the worker has to look after.
  `create index messages_under_way on messages (status, status_at) where ${UNDER_WAY}`,
  // The original of a content: what a send without its lock still meets, and an attempt under the same lock.
  `create table message_originals (
    lock_hash text primary key,
    message_id text not null,
    lock_claim text,
    created_at ${big} not null
  )`,
  'create index message_originals_by_age on message_originals (created_at)',
]

/** How many messages a workspace keeps, and how large they are. */
const counts = counting({
  table: 'messages',
  workspace: (row) => `${row}.workspace_id`,
  amounts: [
    {
      quota: 'message-bytes',
      amount: (row) => `octet_length(${row}.body) + coalesce(octet_length(${row}.attachments), 0)`,
    },
    { quota: 'messages', amount: () => '1' },
  ],
  changing: ['attachments'],
})

/** For the sweep: those that have come to their end, oldest first. */
const ended = `create index messages_ended on messages (status_at) where status in ('sent', 'failed')`

/** A lead goes some time after the last of its messages: the time of that one is kept when it is removed. */
const leadsUsed = {
  sqlite: [
    'alter table leads add column used_at integer',
    'create index leads_used on leads (coalesce(used_at, created_at))',
    `create trigger lead_used after delete on messages begin
      update leads set used_at = max(coalesce(used_at, 0), old.created_at) where id = old.lead_id; end`,
  ],
  postgres: [
    'alter table leads add column used_at bigint',
    'create index leads_used on leads (coalesce(used_at, created_at))',
    // Locked in one order, because several processes remove messages of the same leads; and by its name before the counts,
    // as a message that is accepted does.
    `create function lead_used() returns trigger language plpgsql as $$ begin
      perform 1 from leads where id in (select lead_id from gone) order by id for no key update;
      update leads set used_at = greatest(used_at, newest.at)
        from (select lead_id, max(created_at) as at from gone group by lead_id) as newest where id = newest.lead_id;
      return null; end $$`,
    `create trigger lead_used after delete on messages referencing old table as gone
      for each statement execute function lead_used()`,
  ],
}

/** The calls that a provider may get within a span; `taken` counts their holders, so that one of before ends nothing. */
const slots = (big: string) => `create table message_slots (
  channel text not null,
  slot integer not null,
  taken ${big} not null,
  free_at ${big} not null,
  primary key (channel, slot)
)`

/** Leads, conversations and messages, beside the ledger's own tables. */
export const migrations: Migrations = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types: { integer } }) => [...leads(integer), ...messages(integer)],
    encrypted: {
      leads: { phone: 'lookup', email: 'lookup' },
      conversations: { phone: 'lookup' },
      messages: {
        recipient_phone: 'secret',
        recipient_email: 'secret',
        body: 'secret',
        subject: 'secret',
        attachments: 'secret',
        error: 'secret',
        lock_hash: 'lookup',
      },
      message_originals: { lock_hash: 'lookup' },
    },
  },
  // Code that does not know of the counts is counted all the same.
  {
    version: 2,
    oldestCode: 1,
    up: ({ name }) => [...counts[name], ended, ...leadsUsed[name]],
  },
  { version: 3, oldestCode: 1, up: ({ types: { integer } }) => [slots(integer)] },
]
