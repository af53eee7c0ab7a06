import type { Admin, ErasedOwner } from 'onceonly/admin'
import type { Base } from '../store.ts'
import { mentions, ROWS } from './erase-rows.ts'

/** Dead letters, of the outbox and of consumers, that are about an owner. */
export interface LetterRemoval {
  /** @param imports the ids of the owner's imports, which most messages name */
  count(owner: ErasedOwner, imports: ReadonlySet<string>): Promise<number>
  remove(owner: ErasedOwner, imports: ReadonlySet<string>, progress: () => void): Promise<number>
}

export function createLetterRemoval({ sql }: Base, { events }: Pick<Admin, 'events'>): LetterRemoval {
  /** Nothing can be looked up in what is encrypted, so that all of them are read, page by page. */
  async function each(
    owner: ErasedOwner,
    imports: ReadonlySet<string>,
    visit: Readonly<Record<'published' | 'received', (ids: readonly string[], consumer: string) => Promise<unknown>>>,
  ): Promise<number> {
    if (events === null) return 0
    let found = 0
    for (let cursor: string | null = null; ; ) {
      const page: Awaited<ReturnType<typeof events.outboxDead>> = await events.outboxDead({ limit: ROWS, cursor })
      const ids = page.rows.filter(({ message }) => isOf(owner, imports, message.body)).map(({ message }) => message.id)
      if (ids.length > 0) await visit.published(ids, '')
      found += ids.length
      cursor = page.cursor
      if (cursor === null) break
    }
    for (const { consumer, deadLetters } of await events.consumers()) {
      if (deadLetters === 0) continue
      for (let cursor: string | null = null; ; ) {
        const page: Awaited<ReturnType<typeof events.inboxDead>> = await events.inboxDead(consumer, {
          limit: ROWS,
          cursor,
        })
        const letters = page.rows
          .filter(({ message }) => isOf(owner, imports, message.body))
          .map(({ letter }) => letter)
        if (letters.length > 0) await visit.received(letters, consumer)
        found += letters.length
        cursor = page.cursor
        if (cursor === null) break
      }
    }
    return found
  }

  const nothing = async () => {}
  return {
    count: (owner, imports) => each(owner, imports, { published: nothing, received: nothing }),
    remove: (owner, imports, progress) =>
      each(owner, imports, {
        async published(ids) {
          await events?.outboxPurge(ids, false)
          progress()
        },
        async received(letters, consumer) {
          await events?.inboxPurge(consumer, letters, false)
          // The failures of its deliveries may quote it.
          const places = letters.map(() => '?').join(', ')
          await sql.query(`delete from onceonly_inbox_failures where consumer = ? and message in (${places})`, [
            consumer,
            ...letters,
          ])
          progress()
        },
      }),
  }
}

function isOf(owner: ErasedOwner, imports: ReadonlySet<string>, text: string): boolean {
  const body = parsed(text)
  if (owner.kind === 'person') {
    if (!mentions(body, owner.person)) return false
    return owner.tenant === undefined || isOfWorkspace(owner.tenant, imports, body)
  }
  return isOfWorkspace(owner.tenant, imports, body)
}

function isOfWorkspace(tenant: string, imports: ReadonlySet<string>, body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  const { tenant: named, workspaceId, searchId } = body as Readonly<Record<string, unknown>>
  return named === tenant || workspaceId === tenant || (typeof searchId === 'string' && imports.has(searchId))
}

/** What came from outside may be no JSON at all. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
