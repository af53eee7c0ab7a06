import Type, { type Static } from 'typebox'
import { filledText, optionalText } from '../http/input.ts'
import { batchAnswer, batchRequest } from '../openapi/batch.ts'
import { type Declaration, named } from '../openapi/declaration.ts'
import { escalation } from './escalation.ts'

/** The commands of the escalations: their schemas check, type and document them. */

const system = {
  name: 'escalations',
  about: 'A command API: the escalation, its audit row, its event and the record of its key commit in one transaction.',
}

/** Lengths in characters: ids are short, and a reason is a paragraph. */
export const command = named(
  'EscalateRequest',
  Type.Object(
    { caseId: filledText(100), targetQueue: filledText(100), reason: optionalText(2_000) },
    { additionalProperties: false },
  ),
)

export type EscalateCommand = Static<typeof command>

const Location = 'Where the escalation is read.'

export const escalateCase = {
  id: 'case.escalate',
  system,
  summary: 'Escalate a case to a queue',
  description: 'A case is escalated to a queue once, whatever keys its callers use.',
  access: 'api key',
  body: {
    schema: command,
    example: { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'Customer disputes the invoice' },
  },
  answers: {
    201: { about: 'Escalated', schema: escalation, headers: { Location } },
    404: { about: 'There is no such case in this workspace' },
    409: { about: 'Already escalated to this queue', headers: { Location } },
    422: { about: 'The case cannot be escalated to this queue' },
  },
} satisfies Declaration

export const escalateBatch: Declaration = {
  id: 'case.escalateBatch',
  system,
  summary: 'Escalate many cases in one request',
  description:
    'Every item is a command of its own, in a transaction of its own. Send the same batch again, whole or in part, to ' +
    'run what is not done; an `Idempotency-Key` is refused, because it would freeze a partial result.',
  access: 'api key',
  body: {
    schema: batchRequest(command),
    example: {
      batchId: 'monday',
      items: [
        { itemKey: 'first', caseId: 'CASE-102', targetQueue: 'BILLING' },
        { itemKey: 'second', caseId: 'CASE-103', targetQueue: 'BILLING', reason: 'Twice overdue' },
      ],
    },
  },
  answers: { 200: { about: 'One result for each item', schema: batchAnswer } },
}

export const readEscalation = {
  id: 'case.escalation.get',
  system,
  summary: 'Read one escalation',
  access: 'api key',
  path: { id: 'The number of an escalation, such as ESC-1001.' },
  answers: { 200: { about: 'The escalation', schema: escalation } },
} satisfies Declaration
