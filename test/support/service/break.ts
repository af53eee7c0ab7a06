import { isOnceError } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import type { Cluster, PlaceName } from './cluster.ts'

/** Makes the database refuse some rows of a table, until the returned function is called. */
export async function breakTable(
  { sql }: Cluster,
  place: PlaceName,
  table: string,
  when: string,
  event = 'insert',
): Promise<() => Promise<void>> {
  const name = `broken_${table}`
  if (place === 'sqlite') {
    await sql(
      `create trigger ${name} before ${event} on ${table} when ${when} begin select raise(abort, 'broken on purpose'); end`,
    )
    return async () => void (await sql(`drop trigger ${name}`))
  }
  await sql(`create function ${name}() returns trigger language plpgsql as $$
    begin if ${when} then raise exception 'broken on purpose'; end if; return new; end $$`)
  await sql(`create trigger ${name} before ${event} on ${table} for each row execute function ${name}()`)
  return async () => {
    await sql(`drop trigger ${name} on ${table}`)
    await sql(`drop function ${name}()`)
  }
}

/** A query of this many rows takes a second or a few, in which nothing else happens in its process. */
const SLOW_ROWS = 6_000_000

/**
 * Holds a process while it writes some rows of a table: on PostgreSQL until the returned function is called, on
 * SQLite, where no other can write meanwhile, for a few seconds.
 */
export async function holdTable(
  { sql }: Cluster,
  place: PlaceName,
  table: string,
  when: string,
  slowRows = SLOW_ROWS,
): Promise<() => Promise<void>> {
  const name = `held_${table}`
  if (place === 'sqlite') {
    await sql(`create view ${name}_view as with recursive counted(x) as
      (select 1 union all select x + 1 from counted where x < ${slowRows}) select count(*) as n from counted`)
    await sql(`create trigger ${name} before insert on ${table} when ${when} begin select n from ${name}_view; end`)
    return async () => {
      await sql(`drop trigger ${name}`)
      await sql(`drop view ${name}_view`)
    }
  }
  await sql(`create table ${name}_gate (closed boolean)`)
  await sql(`insert into ${name}_gate values (true)`)
  await sql(`create function ${name}() returns trigger language plpgsql as $$
    begin
      if ${when} then
        while exists (select from ${name}_gate) loop perform pg_sleep(0.02); end loop;
      end if;
      return new;
    end $$`)
  await sql(`create trigger ${name} before insert on ${table} for each row execute function ${name}()`)
  return async () => {
    await sql(`delete from ${name}_gate`)
    await sql(`drop trigger ${name} on ${table}`)
    await sql(`drop function ${name}()`)
    await sql(`drop table ${name}_gate`)
  }
}

/** Until a writer is held, or `was` says that it was: on SQLite the hold ends by itself. */
export async function whenHeld({ sql, store }: Cluster, place: PlaceName, was = () => false): Promise<void> {
  await until('a writer is held', async () => {
    if (was()) return true
    if (place === 'postgres') {
      const text = "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
      return (await sql(text)).length > 0
    }
    try {
      await store.transactions.run(async () => {}, { timeoutMs: 1_000, lockMs: 50, refuseTwinOf: null })
      return false
    } catch (error) {
      return isOnceError(error, 'store_busy')
    }
  })
}
