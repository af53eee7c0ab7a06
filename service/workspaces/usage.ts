/**
 * How much every workspace keeps, counted by triggers in the transaction that writes or removes the rows: exact whichever
 * code or process does it, also after a crash, and read as a handful of rows instead of a count of all.
 */

/** What is counted; each is a quota of a workspace. */
export type KeptQuota =
  | 'clients'
  | 'imports'
  | 'message-bytes'
  | 'messages'
  | 'project-bytes'
  | 'rooms'
  | 'runs'
  | 'sequences'
  | 'upload-bytes'

/** Rows of one count on PostgreSQL: transactions on different connections seldom wait for each other's. */
const SLOTS = 16

/** Made by whichever table is counted first. `slot` splits one count into several rows; SQLite, with one writer, has one. */
const usageTable = (big: string) => `create table if not exists workspace_usage (
  workspace_id text not null,
  quota text not null,
  slot integer not null,
  used ${big} not null,
  primary key (workspace_id, quota, slot)
)`

/** An SQL expression about one row of a table, by the name that the row has in the statement. */
type OfRow = (row: string) => string

export interface CountedTable {
  readonly table: string
  /** The workspace that a row belongs to. */
  readonly workspace: OfRow
  /** How much a row adds to each quota. In the order of their names, so that locks are always taken in one order. */
  readonly amounts: readonly { readonly quota: KeptQuota; readonly amount: OfRow }[]
  /** Columns whose change changes an amount. */
  readonly changing?: readonly string[]
}

type Statements = { readonly sqlite: readonly string[]; readonly postgres: readonly string[] }

/** The statements of a migration that begins to count the rows of a table, those included that are there already. */
export function counting(counted: CountedTable): Statements {
  const { table, workspace, amounts } = counted
  const existing = amounts.map(
    ({ quota, amount }) => `insert into workspace_usage (workspace_id, quota, slot, used)
      select ${workspace('each')}, '${quota}', 0, sum(${amount('each')}) from ${table} as each
      group by 1 having sum(${amount('each')}) > 0`,
  )
  // The triggers first: on PostgreSQL they keep writers away until the migration has committed.
  return {
    sqlite: [usageTable('integer'), ...sqliteTriggers(counted), ...existing],
    postgres: [usageTable('bigint'), ...postgresTriggers(counted), ...existing],
  }
}

function sqliteTriggers({ table, workspace, amounts, changing }: CountedTable): string[] {
  const add = (row: string, signed: (amount: OfRow) => string) =>
    amounts
      .map(
        ({ quota, amount }) => `insert into workspace_usage (workspace_id, quota, slot, used)
          values (${workspace(row)}, '${quota}', 0, ${signed(amount)})
          on conflict (workspace_id, quota, slot) do update set used = used + excluded.used;`,
      )
      .join('\n')
  const trigger = (event: string, when: string, statements: string) =>
    `create trigger ${table}_counted_${event} after ${when} begin ${statements} end`
  return [
    trigger(
      'insert',
      `insert on ${table}`,
      add('new', (amount) => amount('new')),
    ),
    trigger(
      'delete',
      `delete on ${table}`,
      add('old', (amount) => `-(${amount('old')})`),
    ),
    ...(changing === undefined ? [] : [trigger('update', updates(table, changing), add('new', difference))]),
  ]
}

function postgresTriggers({ table, workspace, amounts, changing }: CountedTable): string[] {
  const values = (signed: (amount: OfRow) => string) =>
    amounts.map(({ quota, amount }) => `('${quota}', (${signed(amount)})::bigint)`).join(', ')
  const trigger = (event: string, when: string, counts: string) => [
    `create function ${table}_counted_${event}() returns trigger language plpgsql as $$ begin
      insert into workspace_usage as kept (workspace_id, quota, slot, used) ${counts}
      on conflict (workspace_id, quota, slot) do update set used = kept.used + excluded.used;
      return null; end $$`,
    `create trigger ${table}_counted_${event} after ${when} execute function ${table}_counted_${event}()`,
  ]
  const slot = `pg_backend_pid() % ${SLOTS}`
  /** Rows come and change one by one. */
  const ofOne = (signed: (amount: OfRow) => string) => `select ${workspace('new')}, quota, ${slot}, amount
    from (values ${values(signed)}) as counted (quota, amount) where amount <> 0`
  /** And are removed by hundreds, of several workspaces: their counts are locked in one order. */
  const ofMany = `select workspace, quota, ${slot}, sum(amount) from (
      select ${workspace('gone')} as workspace, quota, amount from gone
      cross join lateral (values ${values((amount) => `-(${amount('gone')})`)}) as counted (quota, amount)) as counts
    group by workspace, quota having sum(amount) <> 0 order by workspace collate "C", quota collate "C"`
  return [
    ...trigger(
      'insert',
      `insert on ${table} for each row`,
      ofOne((amount) => amount('new')),
    ),
    ...trigger('delete', `delete on ${table} referencing old table as gone for each statement`, ofMany),
    ...(changing === undefined ? [] : trigger('update', updates(table, changing), ofOne(difference))),
  ]
}

function updates(table: string, changing: readonly string[]): string {
  const changed = changing.map((column) => `new.${column} is distinct from old.${column}`).join(' or ')
  return `update of ${changing.join(', ')} on ${table} for each row when (${changed})`
}

const difference = (amount: OfRow) => `(${amount('new')}) - (${amount('old')})`
