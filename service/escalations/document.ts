import { batchAnswer, batchRequest } from '../openapi/batch.ts'
import { type Declaration, instant, named, record, text, textOrNull } from '../openapi/declaration.ts'
import { lengths } from './command.ts'

/** What the document says about escalations. */

const system = {
  name: 'escalations',
  about: 'A command API: the escalation, its audit row, its event and the record of its key commit in one transaction.',
}

const escalation = named(
  'Escalation',
  record({
    escalationId: { type: 'string', examples: ['ESC-1001'] },
    caseId: text,
    targetQueue: text,
    reason: textOrNull,
    status: { type: 'string', enum: ['OPEN'] },
    createdAt: instant,
  }),
)

const command = record(
  {
    caseId: { type: 'string', minLength: 1, maxLength: lengths.caseId },
    targetQueue: { type: 'string', minLength: 1, maxLength: lengths.targetQueue },
    reason: { type: ['string', 'null'], minLength: 1, maxLength: lengths.reason },
  },
  ['reason'],
)

const Location = 'Where the escalation is read.'

export const escalateCase: Declaration = {
  id: 'case.escalate',
  system,
  summary: 'Escalate a case to a queue',
  description: 'A case is escalated to a queue once, whatever keys its callers use.',
  access: 'api key',
  body: {
    schema: named('EscalateRequest', { ...command, additionalProperties: false }),
    example: { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'Customer disputes the invoice' },
  },
  answers: {
    201: { about: 'Escalated', schema: escalation, headers: { Location } },
    404: { about: 'There is no such case in this workspace' },
    409: { about: 'Already escalated to this queue', headers: { Location } },
    422: { about: 'The case cannot be escalated to this queue' },
  },
}

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

export const readEscalation: Declaration = {
  id: 'case.escalation.get',
  system,
  summary: 'Read one escalation',
  access: 'api key',
  path: { id: 'The number of an escalation, such as ESC-1001.' },
  answers: { 200: { about: 'The escalation', schema: escalation } },
}
