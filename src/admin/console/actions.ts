import { failed, succeeded } from '../../ledger/claim.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import { rerun } from '../../ledger/operator.ts'
import type { Admin } from '../core/admin.ts'
import type { Actor } from '../core/audit.ts'
import type { DeadLetters } from '../core/dead-letters.ts'

/** What a page asks for, as it came. */
export type ActionBody = Readonly<Record<string, unknown>>

/** What a person found out about a step of a run. */
export interface StepWord {
  readonly kind: 'succeeded' | 'failed' | 'not_done'
  readonly result: unknown
  readonly error: string | null
}

export interface ActionParts {
  readonly admin: Admin
  resolveStep(runId: string, key: string, word: StepWord): Promise<unknown>
}

/** Something the person can mend: the field, and what is wrong with it. */
export class BadAction extends Error {
  readonly field: string
  constructor(field: string, what: string) {
    super(what)
    this.field = field
  }
}

type Perform = (parts: ActionParts, body: ActionBody, actor: Actor) => Promise<unknown>

/** Every action of the console, by its name. */
const actions: Readonly<Record<string, Perform>> = {
  release: async ({ admin }, body, actor) => admin.release(actor, await identityOf(admin, body), fenceOf(body)),
  forget: async ({ admin }, body, actor) => admin.forget(actor, await identityOf(admin, body), fenceOf(body)),
  resolve: async ({ admin }, body, actor) => {
    const identity = await identityOf(admin, body)
    return admin.resolve(actor, identity, endingOf(body), fenceOf(body))
  },
  'outbox.redrive': onOutbox('outbox.redrive', ({ outboxRedrive }) => outboxRedrive),
  'outbox.purge': onOutbox('outbox.purge', ({ outboxPurge }) => outboxPurge),
  'inbox.redrive': onInbox('inbox.redrive', ({ inboxRedrive }) => inboxRedrive),
  'inbox.purge': onInbox('inbox.purge', ({ inboxPurge }) => inboxPurge),
  'run.cancel': ({ admin }, body, actor) => {
    const runId = textOf(body, 'runId')
    return admin.act(actor, 'run.cancel', { runId }, async () => admin.runs?.cancel(runId))
  },
  'run.resume': ({ admin }, body, actor) => {
    const runId = textOf(body, 'runId')
    return admin.act(actor, 'run.resume', { runId }, async () => admin.runs?.resume(runId))
  },
  'run.resolve': ({ admin, resolveStep }, body, actor) => {
    const [runId, key] = [textOf(body, 'runId'), textOf(body, 'key')]
    const kind = oneOf(body, 'to', ['succeeded', 'failed', 'not_done'] as const)
    const error = typeof body['error'] === 'string' ? body['error'] : null
    return admin.act(actor, 'run.resolve', { runId, key, to: kind }, async () => {
      await resolveStep(runId, key, { kind, result: body['value'] ?? null, error })
    })
  },
  sweep: ({ admin }, _body, actor) => admin.act(actor, 'sweep', {}, async () => ({ removed: await admin.sweep() })),
}

type OnOutbox = (ids: readonly string[], preview: boolean) => Promise<unknown>
type OnInbox = (consumer: string, letters: readonly string[], preview: boolean) => Promise<unknown>

function onOutbox(what: string, pick: (events: DeadLetters) => OnOutbox): Perform {
  return async ({ admin }, body, actor) => {
    const ids = textsOf(body, 'ids')
    if (admin.events === null) return []
    const work = pick(admin.events)
    if (body['preview'] === true) return await work(ids, true)
    return await admin.act(actor, what, { ids }, () => work(ids, false))
  }
}

function onInbox(what: string, pick: (events: DeadLetters) => OnInbox): Perform {
  return async ({ admin }, body, actor) => {
    const [consumer, letters] = [textOf(body, 'consumer'), textsOf(body, 'letters')]
    if (admin.events === null) return []
    const work = pick(admin.events)
    if (body['preview'] === true) return await work(consumer, letters, true)
    return await admin.act(actor, what, { consumer, letters }, () => work(consumer, letters, false))
  }
}

const previewed: readonly string[] = ['outbox.redrive', 'outbox.purge', 'inbox.redrive', 'inbox.purge']

/** A look at what would be done changes nothing, so that a viewer may have it. */
export function isPreview(body: ActionBody): boolean {
  return body['preview'] === true && previewed.includes(String(body['action']))
}

export async function perform(parts: ActionParts, body: ActionBody, actor: Actor): Promise<unknown> {
  const name = oneOf(body, 'action', Object.keys(actions))
  return (await actions[name]?.(parts, body, actor)) ?? null
}

/** Not in a state that allows it: the person looks again. */
export function isRefusal(error: unknown): error is Error {
  return isOnceError(error) && refusals.includes(error.code)
}

const refusals: readonly string[] = ['not_resolvable', 'fence_moved', 'bad_input', 'bad_message']

async function identityOf(admin: Admin, body: ActionBody): Promise<Identity> {
  const found = await admin.inspect({ id: textOf(body, 'id') })
  if (found === null) throw new BadAction('id', 'is the id of no record')
  return found.record.identity
}

function fenceOf(body: ActionBody): { ifFence?: number } {
  const fence = body['ifFence']
  return typeof fence === 'number' ? { ifFence: fence } : {}
}

function endingOf(body: ActionBody) {
  switch (oneOf(body, 'to', ['succeeded', 'failed', 'rerun'] as const)) {
    case 'succeeded':
      return succeeded(body['value'])
    case 'failed': {
      const why = typeof body['error'] === 'string' ? body['error'] : 'A person found that it failed'
      return failed(new Error(why))
    }
    case 'rerun':
      return rerun
  }
}

function textOf(body: ActionBody, field: string): string {
  const value = body[field]
  if (typeof value !== 'string' || value === '') throw new BadAction(field, 'is not a text')
  return value
}

/** As many as one page shows, and as one action takes up: what is named beyond that would be left out in silence. */
const TEXTS_MOST = limits.pageRows

function textsOf(body: ActionBody, field: string): readonly string[] {
  const value = body[field]
  if (!Array.isArray(value) || value.length > TEXTS_MOST || !value.every((each) => typeof each === 'string')) {
    throw new BadAction(field, `is not a list of at most ${TEXTS_MOST} texts`)
  }
  return value
}

function oneOf<T extends string>(body: ActionBody, field: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === body[field])
  if (found === undefined) throw new BadAction(field, `is none of ${allowed.join(', ')}`)
  return found
}
