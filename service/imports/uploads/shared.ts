import { HOUR } from 'onceonly'
import type { Finding } from 'onceonly/admin'
import type { Log } from '../../logs.ts'
import type { Base } from '../../store.ts'
import type { Storage } from './storage.ts'

/** A storage is in use as long as one of its servers has said so lately. */
const SEEN_MS = 3 * HOUR
export const SAY_EVERY_MS = HOUR

/** Servers on one store share the storage of their uploads; this finds out whether they do. */
export interface SharedStorage {
  /** This server uses its storage. Answers how many are in use. */
  say(): Promise<number>
  /** At the start: a warning when the servers of this store have several of them, or this one does not answer. */
  warn(log: Log): Promise<void>
  /** For `doctor`. */
  finding(): Promise<Finding>
}

const ADVICE =
  'Give all servers the same ONCEONLY_UPLOADS, a bucket or a shared folder: a file that was uploaded to one server is parsed by any other.'
const AWAY = 'Check ONCEONLY_UPLOADS, its network and the rights of this server: it reads, lists and writes there.'

export function sharedStorage({ sql, now }: Base, storage: Pick<Storage, 'id' | 'title' | 'examine'>): SharedStorage {
  async function inUse(): Promise<number> {
    const text = 'select count(*) as n from import_storages where seen_at > ?'
    const [row] = await sql.query<{ readonly n: unknown }>(text, [(await now()) - SEEN_MS])
    return Number(row?.n ?? 0)
  }

  async function say(): Promise<number> {
    const id = await storage.id()
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
      try {
        const storages = await say()
        if (storages > 1) log.warn({ event: 'imports.storage_not_shared', storages }, ADVICE)
      } catch (error) {
        log.warn({ event: 'imports.storage_away', storage: storage.title, err: error }, AWAY)
      }
    },
    async finding() {
      try {
        await storage.examine()
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        return { name: 'uploads', verdict: 'danger', found: `${storage.title} cannot be used: ${why}`, advice: AWAY }
      }
      const storages = await inUse()
      return storages > 1
        ? {
            name: 'uploads',
            verdict: 'danger',
            found: `the servers keep uploads in ${storages} places`,
            advice: ADVICE,
          }
        : { name: 'uploads', verdict: 'ok', found: `${storage.title} is shared and can be written`, advice: null }
    },
  }
}
