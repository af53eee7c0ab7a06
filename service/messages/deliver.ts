import { setTimeout as sleep } from 'node:timers/promises'
import {
  cannotTell,
  DAY,
  type EffectContext,
  type Ending,
  type Execution,
  failed,
  final,
  type GuardNote,
  HOUR,
  happened,
  isOnceError,
  type Ledger,
  MINUTE,
  notDone,
  type ProbeAnswer,
  rerun,
  SECOND,
  succeeded,
} from 'onceonly'
import type { ServerParts } from '../parts.ts'
import { GUARD_NAME } from '../watch.ts'
import type { Attachment } from './attachments.ts'
import { calling, coded, within } from './call.ts'
import { type Channel, LATE_SHARE, type Outgoing, type Result } from './channels/channel.ts'
import type { Channels } from './channels/index.ts'
import { DELIVERY_OPERATION, deliveryOf } from './delivery.ts'
import type { MessageRow } from './message.ts'
import { messageColumns } from './message.ts'
import type { Slot, Slots } from './slots.ts'

/** What a person, or a late answer of the provider, says about a message whose outcome is unknown. */
export type Resolution =
  | { readonly kind: 'sent'; readonly providerMessageId: string | null }
  | { readonly kind: 'failed'; readonly error: string }
  /** It was not sent: the same message goes out again, under the same key. */
  | { readonly kind: 'not_sent' }

export interface Delivery {
  /** Sends a message that has no outcome yet, or waits for the process that does. Returns the message as it stands then. */
  deliver(row: MessageRow): Promise<MessageRow>
  /** Copies to the message what became of its delivery elsewhere: a probe, a resolve, a late answer. */
  follow(row: MessageRow): Promise<void>
  /** Counts a duplicate that was answered with this message. */
  repeated(row: MessageRow): void
  /** Ends an unknown delivery. Rejects with `not_found` or `not_unknown` when there is nothing to end. */
  resolve(row: MessageRow, resolution: Resolution, by: string): Promise<MessageRow>
  /** Waits, bounded, for late answers that are being recorded. */
  stop(): Promise<void>
}

interface SendingRow extends MessageRow {
  readonly lock_claim: string | null
  readonly attachments: string | null
  readonly subject: string | null
}

/** What a delivery needs of a message that no reader of it does. */
type SendingOnly = 'attachments' | 'subject' | 'lock_claim'
/** What a delivery changes. */
type Changing = 'status' | 'provider_message_id' | 'error' | 'due_at' | 'status_at' | 'sent_at'

interface Delivered {
  readonly providerMessageId: string | null
}

const LOCK_OPERATION = `guard.${GUARD_NAME}`
/** Longer than an operator needs to look into an unknown, and than any provider keeps a key. */
const RETAIN_MS = 30 * DAY
/** How much longer than a provider may take a request waits for another process that sends its message. */
const WAIT_EXTRA_MS = 2 * SECOND
/** A provider that says "not now" without a time: one second, doubling up to this. */
const BACK_OFF_MS = { first: 1 * SECOND, most: 5 * MINUTE }
/** A provider's own time is kept up to this, so that a typing error does not hold a message for weeks. */
const RETRY_AFTER_MOST_MS = 1 * HOUR
/** A message that no provider took for this long is refused for good: its reader no longer expects it. */
const DELIVER_FOR_MS = 1 * DAY
/** Providers that honour keys keep them for a day or more; an hour less, because their clock is not ours. */
const KEY_HONOURED_MS = 23 * HOUR
const STOP_MS = 5 * SECOND

interface Parts extends Pick<ServerParts, 'base' | 'log'> {
  readonly ledger: Ledger<unknown>
  readonly channels: Channels
  /** How often providers may be called. */
  readonly slots: Slots
  readonly sendTimeoutMs: number
  /** Of the guard. */
  readonly windowMs: number
}

/** Delivery is one external operation of the ledger per message: leases, unknowns, probes and resolves are the ledger's. */
export function createDelivery({ ledger, base, channels, slots, sendTimeoutMs, windowMs, log }: Parts): Delivery {
  const { sql } = base
  const late = new Set<Promise<unknown>>()
  const operation = ledger.operation<null>({
    name: DELIVERY_OPERATION,
    effect: 'external',
    retainMs: RETAIN_MS,
    whileRunning: { waitMs: sendTimeoutMs + WAIT_EXTRA_MS },
    probe: ({ key }, { claimedAt, calls }) => askAgain(key, claimedAt, calls),
  })

  const sendingOnly = 'attachments, subject, lock_claim'

  async function read(id: string): Promise<SendingRow | null> {
    const text = `select ${messageColumns}, ${sendingOnly} from messages where id = ?`
    return (await sql.query<SendingRow>(text, [id]))[0] ?? null
  }

  async function begin(row: MessageRow): Promise<SendingRow | null> {
    const text = `update messages set status = 'sending', status_at = ${sql.now}
      where id = ? and status = 'queued' returning status, status_at, ${sendingOnly}`
    const [begun] = await sql.query<Pick<SendingRow, 'status' | 'status_at' | SendingOnly>>(text, [row.id])
    // A later attempt finds it begun.
    return begun === undefined ? read(row.id) : { ...row, ...begun }
  }

  /** The effect of one attempt: one call of the provider, bounded. */
  async function send(row: MessageRow, attempt: EffectContext): Promise<Delivered> {
    // A first attempt at a message that was tried before means that its record is gone: what happened then is unknown.
    if (attempt.attemptNumber === 1 && row.status !== 'queued')
      throw new Error('The record of an earlier attempt is gone')
    attempt.note({ calls: 0 })
    const channel = channels.get(row.channel)
    if (channel === null) throw final(new Error(`The channel ${row.channel} is not configured`))
    // Until the provider is called nothing can have been sent.
    const slot = await slotOf(channel)
    const message = await begin(row).catch((error: unknown) => {
      end(slot)
      throw notDone(error)
    })
    if (message === null || !slot.isGood()) {
      end(slot)
      throw message === null ? final(new Error('The message is gone')) : notDone(new Error('Held up before the call'))
    }
    const outgoing = outgoingOf(message)
    const reference = channel.reference(outgoing)
    const named = { provider: channel.name, ...(reference === null ? {} : { reference }) }
    attempt.note({ calls: 1, ...named, guard: guardNoteOf(message) })
    const call = calling(channel, outgoing, sendTimeoutMs * LATE_SHARE).finally(() => end(slot))
    const result = await within(call, sendTimeoutMs)
    if (result?.kind === 'not_now' && result.unreached === true) attempt.note({ calls: 0 })
    if (result !== null) return outcomeOf(result, message)
    keepListening(message, call, attempt.fence)
    throw coded(`The provider did not answer within ${sendTimeoutMs} ms`, 'timed_out')
  }

  /** The provider is called only within its rate: a message without a slot waits for its turn. */
  async function slotOf({ name }: Channel): Promise<Slot> {
    const taken = await slots.take(name).catch((error: unknown) => {
      throw notDone(error)
    })
    if (taken.kind === 'slot') return taken.slot
    throw notDone(new Error(`The rate of ${name} is used up`), { retryAfterMs: taken.waitMs })
  }

  function end(slot: Slot): void {
    const ending = slot.end().finally(() => late.delete(ending))
    late.add(ending)
  }

  /** What operators see of the guard, for as long as the delivery is recorded: much longer than the lock is. */
  function guardNoteOf({ lock_hash: hash, lock_claim: lock, created_at: since }: SendingRow): GuardNote {
    return { operation: LOCK_OPERATION, hash, windowMs, guarded: lock !== null, since: Number(since) }
  }

  /** A late answer is worth recording: it resolves the unknown that the time-out left. */
  function keepListening(row: MessageRow, call: Promise<Result>, fence: EffectContext['fence']): void {
    const heard = call
      .then((result) => record(row, result, fence))
      .catch((error: unknown) =>
        log.error({ event: 'message.late_answer_lost', messageId: row.id, err: error }, 'late answer not recorded'),
      )
      .finally(() => late.delete(heard))
    late.add(heard)
  }

  async function record(row: MessageRow, result: Result, fence: EffectContext['fence']): Promise<void> {
    if (result.kind === 'unknown') return
    try {
      await ledger.resolve(deliveryOf(row), endingOf(result), { by: 'provider', ifFence: fence })
    } catch (error) {
      if (!isOnceError(error) || error.retryable) throw error
      // Another word came first: a person's, or a probe's. It stands, and a provider that contradicts it is reported.
      const status = (await read(row.id))?.status
      if ((status === 'sent' || status === 'failed') && status !== result.kind) {
        const both = { messageId: row.id, recorded: status, answered: result.kind }
        log.warn({ event: 'message.late_answer_conflict', ...both }, 'late answer contradicts the recorded outcome')
      }
      return
    }
    await follow(row)
  }

  /**
   * What the message says is known. A provider that honours keys is asked by sending again under the same key; of others nothing can be learnt. Beyond
   * the time for which keys are kept the same call would be a second message.
   */
  async function askAgain(id: string, claimedAt: number, calls: (count: number) => void): Promise<ProbeAnswer> {
    const row = await read(id)
    if (row?.status === 'sent') return happened({ providerMessageId: row.provider_message_id } satisfies Delivered)
    const channel = row === null ? null : channels.get(row.channel)
    if (row === null || channel === null || !channel.dedups) return cannotTell
    if ((await base.now()) - claimedAt > KEY_HONOURED_MS) return cannotTell
    const taken = await slots.take(channel.name)
    if (taken.kind === 'full') return cannotTell
    const call = calling(channel, outgoingOf(row), sendTimeoutMs).finally(() => end(taken.slot))
    const result = await within(call, sendTimeoutMs)
    if (result?.kind !== 'not_now' || result.unreached !== true) calls(1)
    switch (result?.kind) {
      case 'sent':
        return happened({ providerMessageId: result.providerMessageId } satisfies Delivered)
      case 'failed':
        return result.aboutCall === true ? cannotTell : { answer: 'failed', error: coded(result.error, result.code) }
      default:
        return cannotTell
    }
  }

  /** Writes what became of a delivery to its message. Twice is harmless, and a final status is never taken back. */
  async function write(row: MessageRow, standing: Standing): Promise<MessageRow> {
    const { status, providerMessageId, error, retryAfterMs } = standing
    const dueAt = retryAfterMs === null ? '?' : `${sql.now} + ?`
    const [written] = await sql.query<Pick<MessageRow, Changing>>(
      `update messages set status = ?, provider_message_id = ?, due_at = ${dueAt}, status_at = ${sql.now},
         sent_at = case when ? = 'sent' then ${sql.now} end,
         error = case when ? = 'sent' then null else coalesce(?, error, ?) end,
         attachments = case when ? in ('sent', 'failed') then null else attachments end
       where id = ? and status not in ('sent', 'failed')
       returning status, provider_message_id, error, due_at, status_at, sent_at`,
      [
        status,
        providerMessageId,
        retryAfterMs,
        status,
        status,
        sql.secret(error),
        // An unknown outcome always has a reason; that of the sender counts, also if it came after the row was read.
        sql.secret(status === 'unknown' ? VANISHED : null),
        // Only a message that is still to be sent needs them, and they are most of what it takes up.
        status,
        row.id,
      ],
    )
    return written === undefined ? ((await read(row.id)) ?? row) : { ...row, ...written }
  }

  async function deliver(row: MessageRow): Promise<MessageRow> {
    if (row.status === 'sent' || row.status === 'failed' || row.status === 'unknown') return row
    return carryOut(row)
  }

  async function carryOut(row: MessageRow): Promise<MessageRow> {
    let early: Promise<MessageRow> | null = null
    const execution = await operation.execute(deliveryOf(row), null, async (attempt) => {
      const delivered = await send(row, attempt)
      // Together with the outcome of the record, in one commit where the store can. If only one of the two is written, the
      // probe copies the status to the record, or the worker the outcome to the status.
      // An attempt that outlived its lease writes nothing: its outcome may have been resolved otherwise.
      if (attempt.signal.aborted) return delivered
      early = write(row, sentAs(delivered.providerMessageId))
      early.catch(() => undefined)
      return delivered
    })
    // No outcome yet: the store was away, or another process takes longer than we wait.
    if (execution.kind === 'refused' && !isOutcome(execution.error.code)) {
      if (execution.error.code === 'in_progress') return (await read(row.id)) ?? row
      throw execution.error
    }
    try {
      return await (execution.kind === 'executed' && early !== null ? early : write(row, statusOf(execution)))
    } catch (error) {
      // The record has the outcome, and the worker copies it later; the caller gets what the provider said.
      log.warn({ event: 'message.status_not_written', messageId: row.id, err: error }, 'status not written, retrying')
      const { status, providerMessageId, error: reason } = statusOf(execution)
      return { ...row, status, provider_message_id: providerMessageId, error: reason }
    }
  }

  async function follow(row: MessageRow): Promise<void> {
    const view = await ledger.get(deliveryOf(row))
    // While it is unknown the reconciler probes it, in its own time; everything else is replayed, or due to be sent.
    if (view?.record.state === 'unknown' && row.status === 'unknown') return
    if (view?.record.state === 'in_progress') return
    await carryOut(row)
  }

  return {
    deliver,
    follow,
    repeated: (row) => operation.noteRepeat(deliveryOf(row), 'replays'),
    async resolve(row, resolution, by) {
      const ending = endingOf(resolution)
      await ledger.resolve(deliveryOf(row), ending, { by })
      if (ending !== rerun) return carryOut(row)
      const [again] = await sql.query<MessageRow>(
        `update messages set status = 'queued', error = null, due_at = ?, status_at = ?
         where id = ? and status = 'unknown' returning ${messageColumns}`,
        [await base.now(), await base.now(), row.id],
      )
      return again ?? (await read(row.id)) ?? row
    },
    async stop() {
      await Promise.race([Promise.all(late), sleep(STOP_MS, null, { ref: false })])
    },
  }
}

/** The provider's answer in the words of an effect. */
function outcomeOf(result: Result, row: MessageRow): Delivered {
  switch (result.kind) {
    case 'sent':
      return { providerMessageId: result.providerMessageId }
    case 'failed':
      throw final(coded(result.error, result.code))
    case 'unknown':
      throw coded(result.error, result.code)
    case 'not_now': {
      const error = coded(result.error, result.code)
      const waitedMs = Number(row.status_at) - Number(row.created_at)
      // Doubles what it has waited. Attempts are not counted: most of them may have been a wait for its turn under a rate.
      const backOffMs = Math.min(Math.max(BACK_OFF_MS.first, waitedMs), BACK_OFF_MS.most)
      const retryAfterMs = Math.min(result.retryAfterMs ?? backOffMs, RETRY_AFTER_MOST_MS)
      throw waitedMs + retryAfterMs > DELIVER_FOR_MS ? final(error) : notDone(error, { retryAfterMs })
    }
  }
}

/** What ends the record of a delivery. */
function endingOf(known: Exclude<Result, { kind: 'unknown' }> | Resolution): Ending | typeof rerun {
  switch (known.kind) {
    case 'sent':
      return succeeded({ providerMessageId: known.providerMessageId } satisfies Delivered)
    case 'failed':
      return failed(coded(known.error, 'code' in known ? known.code : undefined))
    case 'not_now':
    case 'not_sent':
      return rerun
  }
}

interface Standing {
  readonly status: 'queued' | 'sent' | 'failed' | 'unknown'
  readonly providerMessageId: string | null
  readonly error: string | null
  /** After how long it is tried again; null where it is not. */
  readonly retryAfterMs: number | null
}

const VANISHED = 'The process that sent it vanished before its provider answered'

const OUTCOMES: ReadonlySet<string> = new Set(['outcome_unknown', 'not_done', 'retry_later'])
const isOutcome = (code: string) => OUTCOMES.has(code)

function sentAs(providerMessageId: string | null): Standing {
  return { status: 'sent', providerMessageId, error: null, retryAfterMs: null }
}

function statusOf(execution: Execution<Delivered>): Standing {
  switch (execution.kind) {
    case 'executed':
    case 'replayed':
    case 'joined':
      return sentAs(providerIdOf(execution.value))
    case 'failed':
      return { status: 'failed', providerMessageId: null, error: execution.failure.message, retryAfterMs: null }
    case 'refused': {
      const { error } = execution
      // What is only repeated from the record has no reason of its own: the message keeps the one that it has.
      const reason = error.cause instanceof Error ? error.cause.message : null
      if (error.code === 'outcome_unknown') {
        return { status: 'unknown', providerMessageId: null, error: reason, retryAfterMs: null }
      }
      return { status: 'queued', providerMessageId: null, error: reason, retryAfterMs: error.retryAfterMs ?? 0 }
    }
  }
}

/** What an operator resolved it with may be anything. */
function providerIdOf(value: unknown): string | null {
  const id =
    typeof value === 'object' && value !== null && 'providerMessageId' in value ? value.providerMessageId : null
  return typeof id === 'string' ? id : null
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
