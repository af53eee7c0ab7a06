import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isOnceError } from 'onceonly'
import type { Log } from '../logs.ts'
import type { Base } from '../store.ts'
import type { Attachment } from './attachments.ts'
import { type Channel, LATE_SHARE, type Outgoing, type Result } from './channels/channel.ts'
import type { Channels } from './channels/index.ts'
import type { MessageRow } from './message.ts'
import { messageColumns } from './message.ts'

export interface Delivery {
  /** Sends a message that is still queued, or waits for whoever does. Answers it as it stands then. */
  deliver(row: MessageRow): Promise<MessageRow>
  /** Takes over a message whose sender vanished: only for channels that deliver the same effect key once. */
  redeliver(row: MessageRow): Promise<void>
  /** A message whose sender vanished, where nobody may try again. */
  giveUp(row: MessageRow, why: string): Promise<void>
  /** Waits, bounded, for outcomes that are still to be written. */
  stop(): Promise<void>
}

interface SendingRow extends MessageRow {
  readonly attachments: string | null
  readonly subject: string | null
}

/** A provider that is busy is asked again after this, and then after four times this. */
const NOT_NOW_TRIES = 3
const NOT_NOW_PAUSE_MS = 100
/** Somebody else sends it: how often we look, and how much longer than a provider may take we wait. */
const LOOK_EVERY_MS = 100
const LOOK_EXTRA_MS = 2_000
/** An outcome that the store does not take is offered again for this long; afterwards the message counts as lost. */
const WRITE_PAUSE_MS = 200
const WRITE_FOR_MS = 60_000
const STOP_MS = 5_000

interface Parts {
  readonly base: Base
  readonly channels: Channels
  readonly sendTimeoutMs: number
  readonly log: Log
}

export function createDelivery({ base, channels, sendTimeoutMs, log }: Parts): Delivery {
  const { sql } = base
  const underWay = new Set<Promise<unknown>>()

  /** The second durable fact, and the fence of every send: of all who try, one gets the message. */
  async function take(row: MessageRow, from: { readonly status: string; readonly sender: string | null }) {
    const sender = randomUUID()
    const now = await base.now()
    const [taken] = await insistent(() =>
      sql.query<SendingRow>(
        `update messages set status = 'sending', sender = ?, status_at = ?, tries = tries + 1
         where id = ? and (sender = ? or (status = ? and coalesce(sender, '') = ?))
         returning ${messageColumns}, attachments, subject`,
        [sender, now, row.id, sender, from.status, from.sender ?? ''],
      ),
    )
    return taken ?? null
  }

  /** The third durable fact. A sender's late word still counts after others gave its message up. */
  async function record(row: MessageRow, result: Result): Promise<MessageRow> {
    const now = await base.now()
    const sent = result.kind === 'sent'
    const status = result.kind === 'not_now' ? 'failed' : result.kind
    const [written] = await sql.query<MessageRow>(
      `update messages set status = ?, provider_message_id = ?, error = ?, not_now = ?, status_at = ?, sent_at = ?
       where id = ? and sender = ? and status in ('sending', 'unknown') returning ${messageColumns}`,
      [
        status,
        sent ? result.providerMessageId : null,
        sent ? null : result.error,
        result.kind === 'not_now' ? 1 : 0,
        now,
        sent ? now : null,
        row.id,
        row.sender,
      ],
    )
    return written ?? current(row)
  }

  /** The provider has spoken: whatever becomes of our note, the caller hears what it said. */
  async function settle(row: MessageRow, result: Result): Promise<MessageRow> {
    try {
      return await insistent(() => record(row, result))
    } catch (error) {
      log.error({ event: 'message.outcome_not_written', messageId: row.id, err: error }, 'It is offered again')
      keep(insistent(() => record(row, result), WRITE_FOR_MS))
      return toldBy(row, result)
    }
  }

  function keep(work: Promise<unknown>): void {
    const given = (error: unknown) =>
      log.error({ event: 'message.outcome_lost', err: error }, 'An outcome was given up')
    const tracked = work.catch(given).finally(() => underWay.delete(tracked))
    underWay.add(tracked)
  }

  /** Calls the provider, bounded. What it says after its time is written down too, because an unknown can be resolved. */
  async function send(row: SendingRow): Promise<MessageRow> {
    const channel = channels.get(row.channel)
    if (channel === null) return settle(row, { kind: 'failed', error: `The channel ${row.channel} is not configured` })
    const signal = AbortSignal.timeout(sendTimeoutMs * LATE_SHARE)
    const call = calling(channel, outgoingOf(row), signal, performance.now() + sendTimeoutMs)
    const timer = new AbortController()
    const late = sleep(sendTimeoutMs, null, { signal: timer.signal }).catch(() => null)
    const result = await Promise.race([call, late])
    timer.abort()
    if (result !== null) return settle(row, result)
    keep(call.then((said) => (said.kind === 'unknown' ? undefined : insistent(() => record(row, said), WRITE_FOR_MS))))
    return settle(row, { kind: 'unknown', error: `The provider did not answer within ${sendTimeoutMs} ms` })
  }

  async function current(row: MessageRow): Promise<MessageRow> {
    const [found] = await sql.query<MessageRow>(`select ${messageColumns} from messages where id = ?`, [row.id])
    return found ?? row
  }

  async function outcomeOf(row: MessageRow): Promise<MessageRow> {
    const until = performance.now() + sendTimeoutMs + LOOK_EXTRA_MS
    for (;;) {
      const seen = await current(row)
      if ((seen.status !== 'queued' && seen.status !== 'sending') || performance.now() >= until) return seen
      await sleep(LOOK_EVERY_MS)
    }
  }

  return {
    async deliver(row) {
      if (row.status !== 'queued') return outcomeOf(row)
      const taken = await take(row, { status: 'queued', sender: null })
      return taken === null ? outcomeOf(row) : send(taken)
    },
    async redeliver(row) {
      const taken = await take(row, { status: 'sending', sender: row.sender })
      if (taken !== null) await send(taken)
    },
    async giveUp(row, why) {
      await record(row, { kind: 'unknown', error: why })
    },
    async stop() {
      await Promise.race([Promise.all(underWay), sleep(STOP_MS, null, { ref: false })])
    },
  }
}

/** A provider that says "not now" is asked again a few times, while there is time; then that is its answer. */
async function calling(channel: Channel, message: Outgoing, signal: AbortSignal, deadline: number): Promise<Result> {
  for (let tries = 1; ; tries++) {
    const result = await channel.send(message, signal).catch(
      (error: unknown): Result => ({
        kind: 'unknown',
        error: error instanceof Error ? error.message : String(error),
      }),
    )
    const pauseMs = NOT_NOW_PAUSE_MS * 4 ** (tries - 1)
    const again = result.kind === 'not_now' && tries < NOT_NOW_TRIES && performance.now() + pauseMs < deadline
    if (!again) return result
    await sleep(pauseMs)
  }
}

const INSIST_MS = 2_000

/** Again while the store says that it cannot be reached; every write here may be repeated. */
async function insistent<T>(write: () => Promise<T>, forMs = INSIST_MS): Promise<T> {
  const until = performance.now() + forMs
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (!(isOnceError(error) && error.retryable) || performance.now() + WRITE_PAUSE_MS >= until) throw error
      await sleep(WRITE_PAUSE_MS)
    }
  }
}

function outgoingOf(row: SendingRow): Outgoing {
  return {
    messageId: row.id,
    effectKey: row.effect_key,
    workspaceId: row.workspace_id,
    phone: row.recipient_phone,
    email: row.recipient_email,
    body: row.body,
    subject: row.subject,
    attachments: row.attachments === null ? [] : (JSON.parse(row.attachments) as Attachment[]),
  }
}

function toldBy(row: MessageRow, result: Result): MessageRow {
  const status = result.kind === 'not_now' ? 'failed' : result.kind
  if (result.kind === 'sent') return { ...row, status, provider_message_id: result.providerMessageId }
  const not_now = result.kind === 'not_now' ? 1 : 0
  return { ...row, status, error: result.error, not_now, provider_message_id: null }
}
