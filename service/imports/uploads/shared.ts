import { HOUR } from 'onceonly'
import type { Finding } from 'onceonly/operate'
import type { Log } from '../../logs.ts'
import type { Base } from '../../store.ts'
import type { Storage } from './storage.ts'

/** A folder is in use as long as one of its servers has said so lately. */
const SEEN_MS = 3 * HOUR
export const SAY_EVERY_MS = HOUR

/** Servers on one store share the folder of their uploads; this finds out whether they do. */
export interface SharedStorage {
  /** This server uses its folder. Answers how many folders are in use. */
  say(): Promise<number>
  /** At the start: a warning when the servers of this store have several folders. */
  warn(log: Log): Promise<void>
  /** For `doctor`. */
  finding(): Promise<Finding>
}

const ADVICE =
  'Let ONCEONLY_DATA of all servers be one shared folder: a file that was uploaded to one server is parsed by any other.'

export function sharedStorage({ sql, now }: Base, { id }: Pick<Storage, 'id'>): SharedStorage {
  async function inUse(): Promise<number> {
    const text = 'select count(*) as n from import_storages where seen_at > ?'
    const [row] = await sql.query<{ readonly n: unknown }>(text, [(await now()) - SEEN_MS])
    return Number(row?.n ?? 0)
  }

  async function say(): Promise<number> {
    await sql.query(
      `insert into import_storages (id, seen_at) values (?, ?)
       on conflict (id) do update set seen_at = excluded.seen_at`,
      [id, await now()],
    )
    return await inUse()
  }

  return {
    say,
    async warn(log) {
      const folders = await say()
      if (folders > 1) log.warn({ event: 'imports.storage_not_shared', folders }, ADVICE)
    },
    async finding() {
      const folders = await inUse()
      const found = folders > 1 ? `the servers keep uploads in ${folders} folders` : 'the servers share one folder'
      return folders > 1
        ? { name: 'uploads', verdict: 'danger', found, advice: ADVICE }
        : { name: 'uploads', verdict: 'ok', found, advice: null }
    },
  }
}
