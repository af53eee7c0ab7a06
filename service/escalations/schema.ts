/** The escalations, beside the ledger's own tables and in the same database, so that both commit together. */
export const migrations = [
  {
    version: 1,
    oldestCode: 1,
    up: {
      sqlite: [
        `create table case_escalations (
          number integer primary key,
          tenant text not null,
          case_id text not null,
          target_queue text not null,
          reason text,
          created_at text not null
        )`,
      ],
      postgres: [
        `create table case_escalations (
          number bigint generated always as identity (start with 1) primary key,
          tenant text not null,
          case_id text not null,
          target_queue text not null,
          reason text,
          created_at text not null
        )`,
      ],
    },
  },
] as const
