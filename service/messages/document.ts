import Type from 'typebox'
import { oneOf } from '../http/input.ts'
import { pageQuery } from '../http/page.ts'
import { batchAnswer, batchRequest } from '../openapi/batch.ts'
import {
  type Declaration,
  instant,
  list,
  named,
  natural,
  record,
  type Schema,
  text,
  textOrNull,
} from '../openapi/declaration.ts'
import { sent } from './answers.ts'
import { ID_PATTERN, sendRequest } from './command.ts'
import { conversation, lead, message, statuses } from './message.ts'
import { LIMIT_MOST, LIMIT_USUAL, placeOf } from './reads.ts'

/** The commands and reads of the messages: their schemas check, type and document them. */

const system = {
  name: 'messages',
  about: 'Outbound messages behind an atomic duplicate guard: identical content goes out once within 15 minutes.',
}

export const sendMessage = {
  id: 'messages.send',
  system,
  summary: 'Send one message to one recipient',
  description:
    'With an `Idempotency-Key` every retry shows the one message as it stands. Without one, or under another key, the ' +
    'guard compares workspace, phone, e-mail and the exact text: within 15 minutes an equal message is not sent again, ' +
    'and the original is answered with `duplicateOnly`. The same text to the same phone with an e-mail address and ' +
    'without one are two messages: send the same recipient fields every time.',
  access: 'api key',
  body: {
    schema: named('SendRequest', sendRequest),
    example: { recipientPhone: '+4915112345678', message: 'Your table is booked for eight o’clock.' },
  },
  answers: {
    200: { about: 'Sent to a known lead, or a duplicate of an earlier message', schema: sent },
    201: { about: 'Sent, to a new lead', schema: sent },
    202: { about: 'Accepted: whether the provider took it is not known yet', schema: sent },
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
    404: { about: 'The leadId names no lead of this workspace' },
    409: { about: 'The recipient contradicts the lead' },
  },
} satisfies Declaration

export const batchSend: Declaration = {
  id: 'messages.batchSend',
  system,
  summary: 'Send many messages in one request',
  description:
    'Every item is a send of its own, with its own key and its own lock. Send the same batch again to run what is not ' +
    'done; an `Idempotency-Key` is refused, because it would freeze a partial result.',
  access: 'api key',
  body: {
    schema: batchRequest(sendRequest),
    example: {
      batchId: 'newsletter-7',
      items: [
        { itemKey: 'ann', recipientEmail: 'ann@example.com', message: 'Hello Ann' },
        { itemKey: 'bob', recipientEmail: 'bob@example.com', message: 'Hello Bob' },
      ],
    },
  },
  answers: { 200: { about: 'One result for each item', schema: batchAnswer } },
}

const pages = pageQuery({ most: LIMIT_MOST, usual: LIMIT_USUAL, placeOf })

function id(description: string) {
  return Type.Optional(Type.String({ pattern: ID_PATTERN, errorMessage: 'is not an id', description }))
}

function page(name: string, items: Schema): Schema {
  return record({ [name]: list(items), cursor: { ...textOrNull, description: 'Null at the end.' } })
}

export const readMessages = {
  id: 'messages.list',
  system,
  summary: 'List messages, newest first',
  access: 'api key',
  query: {
    leadId: id('Only those of this lead.'),
    conversationId: id('Only those of this conversation.'),
    status: Type.Optional(oneOf(statuses, { description: 'Only those with this status.' })),
    ...pages,
  },
  answers: { 200: { about: 'A page of messages', schema: page('messages', message) } },
} satisfies Declaration

export const readMessage = {
  id: 'messages.get',
  system,
  summary: 'Read one message',
  access: 'api key',
  path: { id: 'The `_id` of a message.' },
  answers: { 200: { about: 'The message as it stands', schema: message } },
} satisfies Declaration

export const resolveMessage = {
  id: 'messages.resolve',
  system,
  summary: 'End a message whose outcome is unknown',
  description:
    'For operators who have looked at the provider. `sent` makes the message sent; `not_sent` makes it failed, and an ' +
    'equal message may be sent again once its lock is released.',
  access: 'operator',
  path: { id: 'The `_id` of a message.' },
  body: {
    schema: Type.Object({ outcome: oneOf(['sent', 'not_sent']) }),
    example: { outcome: 'sent' },
  },
  answers: {
    200: { about: 'The message as it stands', schema: message },
    409: { about: 'The message is not unknown, or no longer' },
  },
  repeat: natural('messages.resolve', {
    repeats: 'the same outcome again answers the same message; another outcome is refused with 409',
    businessUniqueness: 'a delivery is one record of the ledger, and is ended under its fence',
    outbox: 'nothing is published',
    tests: 'test/proof/service/messages-unknown.test.ts',
  }),
} satisfies Declaration

export const readLeads = {
  id: 'leads.list',
  system,
  summary: 'List leads, newest first',
  access: 'api key',
  query: pages,
  answers: { 200: { about: 'A page of leads', schema: page('leads', lead) } },
} satisfies Declaration

export const readConversation = {
  id: 'conversations.get',
  system,
  summary: 'Read one conversation',
  access: 'api key',
  path: { id: 'The `_id` of a conversation.' },
  answers: { 200: { about: 'The conversation', schema: conversation } },
} satisfies Declaration

/** What an operator sees of a lock. */
export const lock = named(
  'GuardLock',
  record({
    hash: text,
    workspaceId: text,
    state: text,
    messageId: textOrNull,
    claimedAt: instant,
    ageMs: Type.Number(),
    expiresAt: instant,
  }),
)

export const readLock = {
  id: 'guard.lock.get',
  system,
  summary: 'Look at a lock of the guard',
  access: 'operator',
  path: { hash: 'The hash of the lock, as the events of the guard have it.' },
  answers: { 200: { about: 'What the lock stands for', schema: lock } },
} satisfies Declaration

export const releaseLock = {
  id: 'guard.lock.release',
  system,
  summary: 'Release a lock of the guard before its window ends',
  access: 'operator',
  path: { hash: 'The hash of the lock, as the events of the guard have it.' },
  answers: { 204: { about: 'Released: an equal message may be sent again' } },
  repeat: natural('guard.lock.release', {
    repeats: 'what is released stays released; the second request is answered 404',
    businessUniqueness: 'a lock is one record of the ledger, and is freed under its fence',
    outbox: 'nothing is published',
    tests: 'test/contract/service/messages-guard.test.ts',
  }),
} satisfies Declaration
