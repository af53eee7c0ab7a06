import { SECOND } from 'onceonly'
import type { ServerParts } from '../parts.ts'
import { startIdleRounds } from '../rounds.ts'
import type { Delivery } from './deliver.ts'
import type { MessageRow, Status } from './message.ts'
import { messageColumns } from './message.ts'
import { UNDER_WAY } from './schema.ts'

interface Parts extends Pick<ServerParts, 'base' | 'log'> {
  readonly delivery: Delivery
}

const ROUND_EVERY_MS = 1 * SECOND
/** Rows of one round, and how many of them are worked on at once. */
const ROWS = 50
const LANES = 5
/** A request sends its own message at once; what has had no outcome for this long has lost its request. */
const LEFT_MS = 3 * SECOND
/** With the condition of the partial index, word for word: SQLite infers it from nothing else, and reads all messages. */
const left = (status: Status, condition: string) =>
  `select ${messageColumns} from messages
    where ${UNDER_WAY} and status = '${status}' and ${condition} limit ${ROWS}`
export const looks = {
  queued: left('queued', 'coalesce(due_at, status_at + ?) <= ? order by status_at'),
  sending: left('sending', 'status_at <= ? order by status_at'),
  unknown: left('unknown', '(status_at, id) > (?, ?) order by status_at, id'),
}
const ANY_LEFT = `select 1 as found from messages where ${UNDER_WAY} limit 1`

/** Before every message. */
const FIRST = { at: 0, id: '' }

/**
 * Looks after what a crash left behind, in every process: what was accepted, or put off, is delivered, and what became
 * of a delivery elsewhere is written to its message.
 */
export function startWorker({ base, delivery, log }: Parts): { stop(): Promise<void> } {
  /** Unknown messages are looked at in turn, so that old ones do not hide the others. */
  let unknownAfter = FIRST
  const select = (text: string, values: readonly (string | number)[]) => base.sql.query<MessageRow>(text, values)

  async function round(): Promise<'idle' | 'busy'> {
    // Most rounds find nothing, and that takes one statement.
    if ((await base.sql.query(ANY_LEFT)).length === 0) return 'idle'
    const now = await base.now()
    await inLanes(await select(looks.queued, [LEFT_MS, now]), delivery.deliver)
    await inLanes(await select(looks.sending, [now - LEFT_MS]), delivery.follow)
    const unknown = await select(looks.unknown, [unknownAfter.at, unknownAfter.id])
    const last = unknown.length < ROWS ? undefined : unknown.at(-1)
    unknownAfter = last === undefined ? FIRST : { at: Number(last.status_at), id: last.id }
    await inLanes(unknown, delivery.follow)
    return 'busy'
  }

  /** One message that fails does not keep the others from theirs. */
  async function inLanes(rows: readonly MessageRow[], work: (row: MessageRow) => Promise<unknown>): Promise<void> {
    const waiting = rows.values()
    await Promise.all(
      Array.from({ length: LANES }, async () => {
        for (const row of waiting) {
          await work(row).catch((error: unknown) =>
            log.error({ event: 'message.delivery_failed', messageId: row.id, err: error }, 'delivery failed, retrying'),
          )
        }
      }),
    )
  }

  // A store that is away comes back; the next round finds what this one could not.
  return startIdleRounds(base, 'messages', ROUND_EVERY_MS, () =>
    round().catch((error: unknown) => {
      log.error({ event: 'message.worker_failed', err: error }, 'round failed, retrying')
      return 'busy'
    }),
  )
}
