import { final, HOUR, notDone, SECOND } from 'onceonly'
import type { Channel, StepContext } from 'onceonly/run'
import { checked } from '../http/input.ts'
import { sentenceOf } from '../http/problem.ts'
import { forgetOriginal } from '../messages/accept.ts'
import type { ChannelName } from '../messages/channels/channel.ts'
import type { Channels } from '../messages/channels/index.ts'
import { commandOf, type SendCommand, sendRequest } from '../messages/command.ts'
import type { Delivery, Resolution } from '../messages/deliver.ts'
import type { MessageRow } from '../messages/message.ts'
import { messageById, messageUnder } from '../messages/reads.ts'
import type { Sender, Sent } from '../messages/send.ts'
import type { Base } from '../store.ts'
import { notUnknown } from './not-unknown.ts'
import type { MessageStep } from './step.ts'

/** What a step would send, and to whom. Which provider carries it is a matter of the server, and may change. */
export interface MessagePlan {
  readonly type: MessageStep['type']
  readonly workspaceId: string
  readonly leadId: string
  /** Null where the lead has no such address: then the step fails. */
  readonly to: string | null
  readonly subject: string | null
  readonly message: string
}

export interface MessageSent {
  readonly messageId: string
  readonly status: 'sent'
  readonly channel: string
  readonly providerMessageId: string | null
  /** The same text had gone to the same person already, and was not sent again. */
  readonly duplicate: boolean
}

export interface MessageChannel extends Channel<MessagePlan, MessageSent> {
  /**
   * What a person found out about a message that was unknown. False when there is none. Rejects with `not_resolvable` when
   * the message is still under way.
   */
  settle(plan: MessagePlan, key: string, resolution: Resolution): Promise<boolean>
}

interface Parts {
  readonly base: Base
  readonly sender: Sender
  readonly delivery: Delivery
  readonly channels: Channels
}

/** While the original is in flight: its sender takes seconds. */
const PENDING_MS = 5 * SECOND
/** Messages are removed, or a quota is raised, within hours rather than seconds. */
const QUOTA_MS = 1 * HOUR
/** Attempts at a message that is not accepted: after a working day a person should look. */
const REFUSALS_MOST = 8

/**
 * The messages system as a channel of runs. The key of the step is the key of the message, forever: an attempt
 * after a crash finds the message instead of sending a second one, and an unknown outcome is probed, not repeated.
 */
export function createMessageChannel({ base, sender, delivery, channels }: Parts): MessageChannel {
  async function known(plan: MessagePlan, key: string): Promise<{ row: MessageRow; duplicate: boolean } | null> {
    const own = await messageUnder(base, plan.workspaceId, key)
    if (own !== null) return { row: own, duplicate: false }
    const [original] = await base.sql.query<{ message_id: string }>(
      'select message_id from outreach_originals where step_key = ?',
      [key],
    )
    const row = original === undefined ? null : await messageById(base, plan.workspaceId, original.message_id)
    return row === null ? null : { row, duplicate: true }
  }

  async function keepOriginal(key: string, messageId: string): Promise<void> {
    await base.sql.query(
      'insert into outreach_originals (step_key, message_id) values (?, ?) on conflict (step_key) do nothing',
      [key, messageId],
    )
  }

  /** Until a message is accepted nothing was done; afterwards the sender throws nothing, and the key finds it. */
  async function sending(plan: MessagePlan, command: SendCommand, key: string): Promise<Sent> {
    try {
      const original = await known(plan, key)
      if (original?.duplicate === true) return { kind: 'duplicate', row: original.row, ageMs: 0 }
      const sent = await sender.send(plan.workspaceId, command, {
        effectKey: key,
        providerKey: key,
        attach: async () => {},
      })
      if (sent.kind === 'duplicate') await keepOriginal(key, sent.row.id)
      return sent
    } catch (error) {
      throw notDone(error)
    }
  }

  return {
    name: 'messages',
    offer: { kind: 'correlate' },
    async send(plan, { effectKey: key, attemptNumber }) {
      const sent = await sending(plan, sendOf(plan, channels), key)
      switch (sent.kind) {
        case 'refused': {
          const refusal = new Error(sent.problem.detail)
          // There is room again as soon as older messages are removed, and the lead still waits for this one.
          const mayHelp = sent.problem.name === 'quota-exceeded' && attemptNumber < REFUSALS_MOST
          throw mayHelp ? notDone(refusal, { retryAfterMs: QUOTA_MS }) : final(refusal)
        }
        case 'pending':
          throw notDone(new Error('An identical message is being accepted'), { retryAfterMs: PENDING_MS })
        case 'message':
          return outcomeOf(sent.row, false)
        case 'duplicate':
          return outcomeOf(sent.row, true)
      }
    },
    async verify(plan, { effectKey: key }: StepContext) {
      const found = await known(plan, key)
      if (found === null) return { kind: 'not_done' }
      switch (found.row.status) {
        case 'sent':
          return { kind: 'done', result: resultOf(found.row, found.duplicate) }
        // The next attempt hears why.
        case 'failed':
        case 'queued':
          return { kind: 'not_done' }
        case 'sending':
        case 'unknown':
          return { kind: 'unknown' }
      }
    },
    async settle(plan, key, resolution) {
      const found = await known(plan, key)
      if (found === null) return false
      if (found.duplicate) {
        // The next attempt sends a message of its own instead of meeting the one that was never sent.
        if (resolution.kind !== 'not_sent') return false
        await base.sql.query('delete from outreach_originals where step_key = ?', [key])
        const { phone, email, body } = sendOf(plan, channels)
        const message = { workspaceId: plan.workspaceId, phone, email, body }
        await sender.guard.release({ message }, 'outreach')
        await forgetOriginal(base, sender.guard.hashOf(message))
        return false
      }
      // Its sender may be dead: then this finds that the outcome is unknown, and need not wait for the worker to find it.
      const row = found.row.status === 'sending' ? await delivery.deliver(found.row) : found.row
      if (isUnderWay(row) && resolution.kind !== 'not_sent')
        throw notUnknown(`The message ${row.id} is ${row.status}: its outcome is still to come.`)
      // It was found out just now: the run hears of it by its next probe, whatever a person thought.
      if (row !== found.row && row.status !== 'unknown')
        throw notUnknown(`The message ${row.id} is ${row.status}, as its provider says.`)
      if (row.status !== 'unknown') return false
      await delivery.resolve(row, resolution, 'outreach')
      return true
    },
  }
}

function outcomeOf(row: MessageRow, duplicate: boolean): MessageSent {
  switch (row.status) {
    case 'sent':
      return resultOf(row, duplicate)
    case 'failed':
      throw final(new Error(row.error ?? 'The provider refused the message'))
    case 'queued': {
      // Put off by its provider, and delivered when its time has come: the step asks again then.
      const retryAfterMs = row.due_at === null ? PENDING_MS : Math.max(0, Number(row.due_at) - Number(row.status_at))
      throw notDone(new Error(row.error ?? `The message ${row.id} is queued`), { retryAfterMs })
    }
    case 'sending':
    case 'unknown':
      throw new Error(row.error ?? `The message ${row.id} is ${row.status}`)
  }
}

/** A worker that took the run over from one which still sends: whatever was said now, the message would end otherwise. */
function isUnderWay({ status }: MessageRow): boolean {
  return status === 'queued' || status === 'sending'
}

function resultOf(row: MessageRow, duplicate: boolean): MessageSent {
  const { id: messageId, channel, provider_message_id: providerMessageId } = row
  return { messageId, status: 'sent', channel, providerMessageId, duplicate }
}

/** The command that a client of the messages system would send, held to the same rules. */
function sendOf({ type, leadId, to, subject, message }: MessagePlan, channels: Channels): SendCommand {
  if (to === null) throw final(new Error(`The lead has no ${type === 'email' ? 'e-mail address' : 'phone number'}`))
  const recipient = type === 'email' ? { recipientEmail: to } : { recipientPhone: to }
  const result = checked(sendRequest, { leadId, message, channel: carrierOf(type, channels), ...recipient })
  if ('errors' in result) throw final(new Error(sentenceOf(result.errors)))
  return { ...commandOf(result.value), subject }
}

/** A call is made by a provider of one's own, or by hand: a text message is no call. */
const carriers: Readonly<Record<MessageStep['type'], readonly ChannelName[]>> = {
  email: ['smtp', 'webhook'],
  sms: ['twilio', 'webhook'],
  call: ['webhook'],
}

function carrierOf(type: MessageStep['type'], channels: Channels): ChannelName {
  return carriers[type].find((name) => channels.get(name) !== null) ?? 'local'
}
