import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../logs.ts'
import type { Base } from '../store.ts'
import type { Channels } from './channels/index.ts'
import type { Delivery } from './deliver.ts'
import type { MessageRow } from './message.ts'
import { messageColumns } from './message.ts'

export interface Worker {
  stop(): Promise<void>
}

interface Parts {
  readonly base: Base
  readonly channels: Channels
  readonly delivery: Delivery
  readonly sendTimeoutMs: number
  readonly log: Log
}

interface LostRow extends MessageRow {
  readonly tries: number
}

const ROUND_EVERY_MS = 1_000
/** Rows of one round, and how many of them are sent at once. */
const ROWS = 50
const LANES = 5
/** A request sends its own message at once; what is still queued after this has lost its request. */
const QUEUED_MS = 3_000
/** Longer than a provider may take, by the store's clock: a sender that is still silent has vanished. */
const SENDING_EXTRA_MS = 15_000
const REDELIVERIES_MOST = 5

/**
 * Looks after what a crash left behind, in every process: what was accepted is sent, and what was being sent is unknown,
 * unless its provider recognises it by its key.
 */
export function startWorker({ base, channels, delivery, sendTimeoutMs, log }: Parts): Worker {
  const stopping = new AbortController()

  async function overdue<Row extends MessageRow>(status: string, before: number): Promise<readonly Row[]> {
    return base.sql.query<Row>(
      `select ${messageColumns}, tries from messages where status = ? and status_at <= ? order by status_at limit ?`,
      [status, before, ROWS],
    )
  }

  async function lookAfter(row: LostRow): Promise<void> {
    const mayTryAgain = channels.get(row.channel)?.dedups === true && row.tries <= REDELIVERIES_MOST
    if (mayTryAgain) await delivery.redeliver(row)
    else await delivery.giveUp(row, 'Its sender vanished while it was being sent')
  }

  async function round(): Promise<void> {
    const now = await base.now()
    await inLanes(await overdue<LostRow>('sending', now - sendTimeoutMs - SENDING_EXTRA_MS), lookAfter)
    await inLanes(await overdue('queued', now - QUEUED_MS), delivery.deliver)
  }

  async function forever(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Spread out, so that many processes on one store do not all come at once.
      await sleep(ROUND_EVERY_MS * (0.5 + Math.random()), null, { signal: stopping.signal, ref: false }).catch(() => {})
      if (stopping.signal.aborted) return
      // A store that is away comes back; the next round finds what this one could not.
      await round().catch((error: unknown) => log.error({ event: 'message.worker_failed', err: error }, 'It goes on'))
    }
  }

  const running = forever()
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}

async function inLanes<T>(rows: readonly T[], work: (row: T) => Promise<unknown>): Promise<void> {
  const waiting = rows.values()
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (const row of waiting) await work(row)
    }),
  )
}
