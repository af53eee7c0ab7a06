import type { Admin } from '../core/admin.ts'
import type { DeadLetters } from '../core/dead-letters.ts'
import { type Arguments, optional, text, texts } from './argument.ts'
import { type ActCommand, act, type Context, given, read } from './command.ts'
import { paging } from './paging.ts'
import { badArgument, notFound } from './refusal.ts'

const consumer = text('the consumer')
const ids = texts('ids of dead letters; `all` is a page of them')
const ALL = 'all'
const onConsumer = { consumer, deadLetters: ids }

export const eventCommands = {
  events: read({
    summary: 'what waits in the outbox, and consumers with their dead letters',
    arguments: {},
    needs: ['events'],
    path: '/events',
    async read(context) {
      const events = eventsOf(context)
      return { outbox: await events.outboxStatus(), consumers: await events.consumers() }
    },
  }),
  'outbox.dead': read({
    summary: 'dead letters of the outbox',
    arguments: paging,
    needs: ['events'],
    path: '/events/outbox/dead',
    read: (context, { limit, cursor = null }) => eventsOf(context).outboxDead({ limit, cursor }),
    forViewer: ({ rows, cursor }) => ({ rows: rows.map(withoutBody), cursor }),
  }),
  'outbox.redrive': onOutbox('outboxRedrive', {
    summary: 'publish dead letters of the outbox again',
    details: 'All dead letters of their keys are published again, because the order of a key is kept.',
    question: (_args, letters) => `Publish ${countOf(letters, 'message')} again?`,
  }),
  'outbox.purge': onOutbox('outboxPurge', {
    summary: 'remove dead letters of the outbox for good',
    question: (_args, letters) => `Remove ${countOf(letters, 'message')}?`,
  }),
  'inbox.dead': read({
    summary: 'dead letters of a consumer',
    arguments: { consumer, ...paging },
    words: ['consumer'],
    needs: ['events'],
    path: '/events/inbox/:consumer/dead',
    read: (context, { consumer, limit, cursor = null }) => eventsOf(context).inboxDead(consumer, { limit, cursor }),
    forViewer: ({ rows, cursor }) => ({ rows: rows.map(withoutBody), cursor }),
  }),
  'inbox.redrive': onInbox('inboxRedrive', {
    summary: 'publish dead letters of a consumer again, so that it handles them',
    forViewer: (letters) => letters,
    question({ consumer }, letters) {
      if (letters.some(({ result }) => result === 'ordered')) {
        throw badArgument(
          'consumer',
          'keeps the order of its keys: redrive in its process, by inbox.deadLetters.redrive',
        )
      }
      return `Publish ${countOf(letters, 'message')} again, for ${consumer}?`
    },
  }),
  'inbox.purge': onInbox('inboxPurge', {
    summary: 'remove dead letters of a consumer for good',
    details: 'Later copies of their messages stay duplicates.',
    forViewer: (letters) => letters.map(withoutBody),
    question: ({ consumer }, letters) => `Remove ${countOf(letters, 'dead letter')} of ${consumer} for good?`,
  }),
  sagas: read({
    summary: 'sagas, and how many instances are in which state',
    arguments: {},
    needs: ['sagas'],
    path: '/sagas',
    read: async (context) => ({ sagas: await sagasOf(context).list(), described: context.sagas?.() ?? [] }),
  }),
  'saga.instances': read({
    summary: 'instances of a saga, last changed first',
    arguments: { saga: text('the saga'), state: optional(text('only in this state')), ...paging },
    words: ['saga'],
    needs: ['sagas'],
    path: '/sagas/:saga/instances',
    read: (context, { saga, state, limit, cursor = null }) =>
      sagasOf(context).instances(saga, { limit, cursor, ...given({ state }) }),
  }),
  'saga.instance': read({
    summary: 'one instance, and all that happened to it',
    arguments: { saga: text('the saga'), id: text('the instance') },
    words: ['saga', 'id'],
    needs: ['sagas'],
    path: '/sagas/:saga/instances/:id',
    async read(context, { saga, id }) {
      const found = await sagasOf(context).get(saga, id)
      if (found === null) throw notFound(`${saga} has no instance ${id}.`)
      return found
    },
    forViewer: (found) => ({ ...found, data: null }),
  }),
}

/** Commands are run only where what they need is there. */
function eventsOf({ admin }: Context): DeadLetters {
  return admin.events as DeadLetters
}

function sagasOf({ admin }: Context): NonNullable<Admin['sagas']> {
  return admin.sagas as NonNullable<Admin['sagas']>
}

type Row<A extends Arguments, Subject> = Pick<ActCommand<A, Subject>, 'summary' | 'details' | 'question' | 'forViewer'>

/** What the actions on dead letters answer. */
interface Answers {
  readonly outbox: Awaited<ReturnType<DeadLetters['outboxRedrive']>>
  readonly inboxRedrive: Awaited<ReturnType<DeadLetters['inboxRedrive']>>
  readonly inboxPurge: Awaited<ReturnType<DeadLetters['inboxPurge']>>
}

function onOutbox(how: 'outboxRedrive' | 'outboxPurge', row: Row<{ ids: typeof ids }, Answers['outbox']>) {
  return act({
    arguments: { ids },
    words: ['ids'],
    needs: ['events'],
    async find(context, args) {
      const events = eventsOf(context)
      const named = args.ids.includes(ALL) ? messageIds((await events.outboxDead()).rows) : args.ids
      return found(await events[how](named, true))
    },
    forViewer: (letters) => letters.map(withoutBody),
    target: (_args, letters) => ({ ids: messageIds(letters) }),
    act: (context, _args, letters) => eventsOf(context)[how](messageIds(letters), false),
    ...row,
  })
}

function onInbox<How extends 'inboxRedrive' | 'inboxPurge'>(how: How, row: Row<typeof onConsumer, Answers[How]>) {
  return act<typeof onConsumer, Answers[How], Answers[How]>({
    arguments: onConsumer,
    words: ['consumer', 'deadLetters'],
    needs: ['events'],
    async find(context, args) {
      const events = eventsOf(context)
      const { consumer: of, deadLetters: given } = args
      const named = given.includes(ALL) ? letterIds((await events.inboxDead(of)).rows) : given
      return found((await events[how](of, named, true)) as Answers[How])
    },
    target: (args, letters) => ({ consumer: args.consumer, deadLetters: letterIds(letters) }),
    act: async (context, args, letters) =>
      (await eventsOf(context)[how](args.consumer, letterIds(letters), false)) as Answers[How],
    ...row,
  })
}

function found<Letters extends readonly unknown[]>(letters: Letters): Letters {
  if (letters.length === 0) throw notFound('No such dead letter.')
  return letters
}

function messageIds(letters: readonly { readonly message: { readonly id: string } }[]): readonly string[] {
  return letters.map(({ message }) => message.id)
}

function letterIds(letters: readonly { readonly letter: string }[]): readonly string[] {
  return letters.map(({ letter }) => letter)
}

function countOf(letters: readonly unknown[], what: string): string {
  return letters.length === 1 ? `1 ${what}` : `${letters.length} ${what}s`
}

function withoutBody<L extends { readonly message: { readonly body: string } }>(letter: L) {
  return { ...letter, message: { ...letter.message, body: null, headers: {} } }
}
