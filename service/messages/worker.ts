import { SECOND } from 'onceonly'
import type { ServerParts } from '../parts.ts'
import { startRounds } from '../rounds.ts'
import type { Delivery } from './deliver.ts'
import type { MessageRow, Status } from './message.ts'
import { messageColumns } from './message.ts'

interface Parts extends Pick<ServerParts, 'base' | 'log'> {
  readonly delivery: Delivery
  readonly windowMs: number
}

const ROUND_EVERY_MS = 1 * SECOND
/** Rows of one round, and how many of them are worked on at once. */
const ROWS = 50
const LANES = 5
/** A request sends its own message at once; what has had no outcome for this long has lost its request. */
const LEFT_MS = 3 * SECOND
/** Rows of originals whose window is over, removed in one round. */
const ORIGINALS = 1_000

/**
 * Looks after what a crash left behind, in every process: what was accepted, or put off, is delivered, and what became
 * of a delivery elsewhere is written to its message.
 */
export function startWorker({ base, delivery, windowMs, log }: Parts): { stop(): Promise<void> } {
  /** Unknown messages are looked at in turn, so that old ones do not hide the others. */
  let unknownAfter = ''

  /** The status stands in the text: SQLite takes no partial index for a value that it does not know. */
  function select(status: Status, condition: string, values: readonly (string | number)[]) {
    const text = `select ${messageColumns} from messages where status = '${status}' and ${condition} limit ?`
    return base.sql.query<MessageRow>(text, [...values, ROWS])
  }

  async function round(): Promise<void> {
    const now = await base.now()
    const due = 'coalesce(due_at, status_at + ?) <= ? order by status_at'
    await inLanes(await select('queued', due, [LEFT_MS, now]), delivery.deliver)
    await inLanes(await select('sending', 'status_at <= ? order by status_at', [now - LEFT_MS]), delivery.follow)
    const unknown = await select('unknown', 'id > ? order by id', [unknownAfter])
    unknownAfter = unknown.length < ROWS ? '' : (unknown.at(-1)?.id ?? '')
    await inLanes(unknown, delivery.follow)
    await base.sql.query(
      `delete from message_originals where lock_hash in
         (select lock_hash from message_originals where created_at <= ? limit ?)`,
      [now - windowMs, ORIGINALS],
    )
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
  return startRounds(ROUND_EVERY_MS, () =>
    round().catch((error: unknown) =>
      log.error({ event: 'message.worker_failed', err: error }, 'round failed, retrying'),
    ),
  )
}
