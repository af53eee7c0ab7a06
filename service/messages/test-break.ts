import type { Cluster, PlaceName } from './test-cluster.ts'

/** Makes the database refuse some rows of a table, until the answer is called. */
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
