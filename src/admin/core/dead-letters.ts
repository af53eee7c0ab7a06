import type { InboxDeadLetter } from '../../events/inbox/dead-letters.ts'
import { createDeadLetterBox } from '../../events/inbox/dead-letters.ts'
import { keyOf } from '../../events/inbox/key.ts'
import { ANY_TENANT, type Recorded } from '../../events/inbox/parts.ts'
import { INBOX_ROOM } from '../../events/inbox/tables.ts'
import { createAdd } from '../../events/outbox/add.ts'
import { newMessageId } from '../../events/outbox/id.ts'
import { draftOf } from '../../events/outbox/message.ts'
import {
  createDeadLetters as createOutboxDeadLetters,
  type OutboxDeadLetter,
  type OutboxStatus,
  statusOf,
} from '../../events/outbox/operate.ts'
import { OUTBOX_ROOM, outboxTablesOf } from '../../events/outbox/tables.ts'
import { freePending } from '../../events/saga/pending.ts'
import { tokenOf } from '../../events/saga/route.ts'
import { decodeValue } from '../../ledger/core/codec.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import { HOUR, limits, MINUTE } from '../../ledger/core/limits.ts'
import { redrivenHeaders } from '../../ledger/core/redriven.ts'
import type { Page, SqlStore } from '../../ledger/store/port.ts'

export interface Paging {
  readonly limit?: number
  readonly cursor?: string | null
}

/** A consumer, by its tables alone. */
export interface ConsumerCard {
  readonly consumer: string
  readonly deadLetters: number
  /** Messages that failed and wait for their next try, or were due for it a moment ago. */
  readonly failing: number
  /** Keys that wait for a number that has not come. */
  readonly waitingKeys: number
  /** Messages that it took on in the last hour, as far as they were counted. */
  readonly lastHour: number
}

export interface RedrivenDeadLetter {
  readonly letter: string
  readonly id: string
  readonly topic: string
  readonly reason: string
  /**
   * What would happen to it, or happened: published again; a saga's own timeout or deferred event, due again; handled
   * before, and only removed; not to be redriven.
   */
  readonly result: 'publish' | 'published' | 'due' | 'handled_before' | 'conflict' | 'ordered'
}

/** Events: what waits, what was given up, and how it is tried again. */
export interface DeadLetters {
  outboxStatus(): Promise<OutboxStatus | null>
  outboxDead(page?: Paging): Promise<Page<OutboxDeadLetter>>
  /** A key goes as a whole. */
  outboxRedrive(ids: readonly string[], preview: boolean): Promise<readonly OutboxDeadLetter[]>
  outboxPurge(ids: readonly string[], preview: boolean): Promise<readonly OutboxDeadLetter[]>
  consumers(): Promise<readonly ConsumerCard[]>
  inboxDead(consumer: string, page?: Paging): Promise<Page<InboxDeadLetter>>
  /** Publishes the messages again, in the transaction that frees them, so that the consumer handles them. */
  inboxRedrive(consumer: string, letters: readonly string[], preview: boolean): Promise<readonly RedrivenDeadLetter[]>
  inboxPurge(consumer: string, letters: readonly string[], preview: boolean): Promise<readonly InboxDeadLetter[]>
}

const TRANSACTION = { timeoutMs: limits.storeCallMs, lockMs: limits.transactionLockMs, refuseTwinOf: null }
const CONSUMERS = 1_000
/** What the operations of inboxes are called. */
const INBOX_PREFIX = 'inbox.'

const idle = (consumer: string): ConsumerCard => ({
  consumer,
  deadLetters: 0,
  failing: 0,
  waitingKeys: 0,
  lastHour: 0,
})

/** A consumer without failures has no row in the tables of the inbox, so it is found among the busiest callers. */
async function busyConsumers({ queries, clock }: SqlStore): Promise<Map<string, number>> {
  const since = (await clock.now(TRANSACTION)) - HOUR
  const found = new Map<string, number>()
  for (const { operation, claims } of await queries.busiest(since, limits.pageRows, TRANSACTION)) {
    if (!operation.startsWith(INBOX_PREFIX)) continue
    const consumer = operation.slice(INBOX_PREFIX.length)
    found.set(consumer, (found.get(consumer) ?? 0) + claims)
  }
  return found
}

export function createDeadLetters(store: SqlStore, has: (room: string) => Promise<boolean>): DeadLetters {
  const { sql } = store
  const tables = outboxTablesOf(store)
  const outbox = createOutboxDeadLetters(store, tables)
  const add = createAdd(sql)
  const nothing = { rows: [], cursor: null }

  async function redriveOne(
    consumer: string,
    letter: InboxDeadLetter,
    preview: boolean,
  ): Promise<RedrivenDeadLetter['result']> {
    const { message } = letter
    const token = tokenOf(message)
    if (token !== null) return preview ? 'due' : await freeOne(consumer, letter, token)
    const key = keyOf(message.id)
    const identity = { tenant: ANY_TENANT, caller: consumer, operation: INBOX_PREFIX + consumer, key }
    const id = recordIdOf(identity)
    const { records } = await store.claims.read([id], TRANSACTION)
    const record = records[0] ?? null
    const settled =
      record?.state === 'succeeded' && record.outcome.data !== null
        ? (decodeValue(record.outcome.data) as Recorded).settled
        : null
    if (settled !== null && settled.kind !== 'parked') {
      if (letter.reason === 'conflict') return 'conflict'
      if (!preview) await createDeadLetterBox(sql, consumer).remove(sql, letter.letter)
      return 'handled_before'
    }
    if (preview) return 'publish'
    await store.transactions.run(async (session) => {
      // 1. Under its fence, and only the record that was read: a copy that was handled meanwhile is never run again.
      if (record !== null && record.state !== 'vacant') {
        const { decision } = await session.apply({
          kind: 'forget',
          id,
          by: 'operator',
          ifFence: record.fence,
          onlyRunning: false,
        })
        if (decision.kind !== 'done')
          throw new OnceError(decision.why, `The letter ${letter.letter} changed meanwhile.`)
      }
      // 2. The letter and its failures go, 3. and the message is published again under its own id, all or nothing.
      const { tx } = session
      await tx.query('DELETE FROM onceonly_inbox_dead_letters WHERE consumer = ? AND letter = ?', [
        consumer,
        letter.letter,
      ])
      await tx.query('DELETE FROM onceonly_inbox_failures WHERE consumer = ? AND message = ?', [consumer, key])
      const { topic, body } = message
      const own = Object.fromEntries(Object.entries(message.headers ?? {}).filter(([name]) => !isOurs(name)))
      // Without its key: a second number for it would look like a hole to those who keep the order.
      const draft = draftOf({ topic, body: null, headers: own })
      const headers = JSON.stringify({
        ...own,
        [redrivenHeaders.for]: consumer,
        [redrivenHeaders.as]: newMessageId(),
      })
      const bytes = Buffer.byteLength(body) + headers.length
      await add(tx, { id: message.id, given: false, draft: { ...draft, headers, body, bytes } })
    }, TRANSACTION)
    return 'published'
  }

  /** What a saga sends to itself goes over no broker: its row is delivered again, by any process of the saga. */
  async function freeOne(
    consumer: string,
    { letter }: InboxDeadLetter,
    token: string,
  ): Promise<'due' | 'handled_before'> {
    return await store.transactions.run(async ({ tx }) => {
      await createDeadLetterBox(sql, consumer).remove(tx, letter)
      return (await freePending(tx, sql.now, token, newMessageId())) ? 'due' : 'handled_before'
    }, TRANSACTION)
  }

  /** An ordered consumer needs the very number that is missing: only its own process can redeliver that. */
  async function isOrdered(consumer: string): Promise<boolean> {
    const text = 'SELECT 1 AS one FROM onceonly_inbox_order WHERE consumer = ? LIMIT 1'
    return (await sql.query(text, [consumer])).length > 0
  }

  async function lettersOf(consumer: string, letters: readonly string[]): Promise<readonly InboxDeadLetter[]> {
    if (!(await has(INBOX_ROOM))) return []
    return await createDeadLetterBox(sql, consumer).oldest({ letters }, limits.pageRows)
  }

  return {
    outboxStatus: async () => ((await has(OUTBOX_ROOM)) ? await statusOf(sql) : null),
    outboxDead: async (page = {}) => ((await has(OUTBOX_ROOM)) ? await outbox.list({}, page) : nothing),
    outboxRedrive: async (ids, preview) => ((await has(OUTBOX_ROOM)) ? await outbox.redrive({ ids }, { preview }) : []),
    outboxPurge: async (ids, preview) => ((await has(OUTBOX_ROOM)) ? await outbox.purge({ ids }, { preview }) : []),
    async consumers() {
      const busy = await busyConsumers(store)
      if (!(await has(INBOX_ROOM))) return [...busy].map(([consumer, lastHour]) => ({ ...idle(consumer), lastHour }))
      const rows = await sql.query<{ consumer: string; dead: unknown; failing: unknown; waiting: unknown }>(
        // Failures are kept after a message was handled: only a due retry means that it was not.
        `SELECT consumer, sum(dead) AS dead, sum(failing) AS failing, sum(waiting) AS waiting FROM (
           SELECT consumer, 1 AS dead, 0 AS failing, 0 AS waiting FROM onceonly_inbox_dead_letters
           UNION ALL SELECT consumer, 0, 1, 0 FROM onceonly_inbox_failures WHERE retry_at > (SELECT ${sql.now}) - ${MINUTE}
           UNION ALL SELECT consumer, 0, 0, CASE WHEN waiting_lowest IS NULL THEN 0 ELSE 1 END FROM onceonly_inbox_order
         ) AS all_of_them GROUP BY consumer ORDER BY consumer LIMIT ${CONSUMERS}`,
      )
      const cards = new Map([...busy.keys()].map((consumer) => [consumer, idle(consumer)]))
      for (const { consumer, dead, failing, waiting } of rows) {
        const counts = { deadLetters: Number(dead), failing: Number(failing), waitingKeys: Number(waiting) }
        cards.set(consumer, { ...idle(consumer), ...counts })
      }
      const named = [...cards.values()].toSorted((a, b) => (a.consumer < b.consumer ? -1 : 1)).slice(0, CONSUMERS)
      return named.map((card) => ({ ...card, lastHour: busy.get(card.consumer) ?? 0 }))
    },
    async inboxDead(consumer, { limit = limits.pageRows, cursor = null } = {}) {
      if (!(await has(INBOX_ROOM))) return nothing
      const most = Math.min(Math.max(1, limit), limits.pageRows)
      return await createDeadLetterBox(sql, consumer).list({}, { limit: most, cursor })
    },
    async inboxRedrive(consumer, letters, preview) {
      const found = await lettersOf(consumer, letters)
      const ordered = found.length > 0 && (await isOrdered(consumer))
      if (!preview && !ordered) await tables.prepare()
      const done: RedrivenDeadLetter[] = []
      for (const letter of found) {
        const { reason, message } = letter
        const result = ordered
          ? 'ordered'
          : await redriveOne(consumer, letter, preview).catch((error: unknown) => {
              throw halfDone(error, done)
            })
        done.push({ letter: letter.letter, id: message.id, topic: message.topic, reason, result })
      }
      return done
    },
    async inboxPurge(consumer, letters, preview) {
      const found = await lettersOf(consumer, letters)
      const box = createDeadLetterBox(sql, consumer)
      if (!preview) for (const { letter } of found) await box.remove(sql, letter)
      return found
    },
  }
}

/** Of an earlier redrive: brokers and their adapters give these a meaning. */
function isOurs(header: string): boolean {
  return header.toLowerCase().startsWith('onceonly-')
}

/** Every dead letter is a transaction of its own: the error of one also says how many were published before it. */
function halfDone(error: unknown, done: readonly RedrivenDeadLetter[]): unknown {
  const published = done.filter(({ result }) => result === 'published' || result === 'due').length
  if (published === 0 || !(error instanceof OnceError)) return error
  const letters = published === 1 ? 'letter was' : 'letters were'
  const said = error.message.slice(0, -error.next.length).trimEnd()
  return new OnceError(error.code, `${said} Before it, ${published} ${letters} published again.`, { cause: error })
}
