import type { Guard } from 'onceonly/guard'
import { type Problem, sentenceOf } from '../http/problem.ts'
import type { Base } from '../store.ts'
import type { Channel } from './channels/channel.ts'
import type { Channels } from './channels/index.ts'
import type { SendCommand } from './command.ts'
import type { GuardedMessage } from './events.ts'
import { leadById, type Recipient } from './leads.ts'
import type { LeadRow } from './message.ts'

export interface Refused {
  readonly kind: 'refused'
  readonly problem: Problem
}

/** A command together with what the database and the configuration say about it. */
export interface Addressed {
  readonly kind: 'addressed'
  readonly command: SendCommand
  readonly to: Recipient
  readonly channel: Channel
  /** The name of the lock on this content. */
  readonly hash: string
}

interface Parts {
  readonly base: Base
  readonly channels: Channels
  readonly guard: Guard<GuardedMessage>
}

export async function address(
  { base, channels, guard }: Parts,
  workspaceId: string,
  command: SendCommand,
): Promise<Addressed | Refused> {
  const { leadId } = command
  const lead = leadId === null ? null : await leadById(base.sql, workspaceId, leadId)
  if (leadId !== null && lead === null) return unknownLead(leadId)
  const contradicted = lead === null ? [] : contradictions(lead, command)
  if (contradicted.length > 0) return contradictedLead(contradicted)
  const to = recipientOf(workspaceId, command, lead)
  const channel = command.channel === null ? channels.pick(to) : channels.get(command.channel)
  if (channel === null) return badChannel(`${command.channel} is not configured on this server`)
  const errors = channel.complaints({ ...to, attachments: command.attachments })
  if (errors.length > 0) return invalid(errors)
  return { kind: 'addressed', command, to, channel, hash: guard.hashOf({ ...to, body: command.body }) }
}

/** The request's own recipients; with a lead alone, those of the lead. */
function recipientOf(workspaceId: string, { phone, email }: SendCommand, lead: LeadRow | null): Recipient {
  if (lead !== null && phone === null && email === null) return { workspaceId, phone: lead.phone, email: lead.email }
  return { workspaceId, phone, email }
}

/** A lead that has no phone, or no e-mail address, is not contradicted by one. */
function contradictions(lead: LeadRow, { phone, email }: SendCommand): string[] {
  return [
    ...(phone !== null && lead.phone !== null && phone !== lead.phone ? ['recipientPhone'] : []),
    ...(email !== null && lead.email !== null && email !== lead.email ? ['recipientEmail'] : []),
  ]
}

function unknownLead(leadId: string): Refused {
  const detail = `There is no lead ${leadId} in this workspace.`
  const errors = [{ field: 'leadId', detail: 'is not a known lead' }]
  return { kind: 'refused', problem: { name: 'unknown-lead', detail, errors } }
}

function contradictedLead(fields: readonly string[]): Refused {
  const errors = fields.map((field) => ({ field, detail: 'is not the one of the lead' }))
  const detail = `${fields.join(' and ')} contradict the lead that leadId names.`
  return { kind: 'refused', problem: { name: 'lead-contradicted', detail, errors } }
}

function badChannel(detail: string): Refused {
  return invalid([{ field: 'channel', detail }])
}

function invalid(errors: NonNullable<Problem['errors']>): Refused {
  return { kind: 'refused', problem: { name: 'invalid-input', detail: sentenceOf(errors), errors } }
}
