import { failed, type Identity, isOnceError, rerun, succeeded } from 'onceonly'
import type { Actor, Operate } from 'onceonly/operate'
import type { Runs } from '../outreach/runs.ts'

/** What a page asks for, as it came. */
export type ActionBody = Readonly<Record<string, unknown>>

export interface ActionParts {
  readonly operate: Operate
  /** The runs of this server know more than their rows: a message that a step has sent is told, too. */
  readonly runs: Runs['inside']
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
  release: async ({ operate }, body, actor) => operate.release(actor, await identityOf(operate, body), fenceOf(body)),
  forget: async ({ operate }, body, actor) => operate.forget(actor, await identityOf(operate, body), fenceOf(body)),
  resolve: async ({ operate }, body, actor) => {
    const identity = await identityOf(operate, body)
    return operate.resolve(actor, identity, endingOf(body), fenceOf(body))
  },
  'outbox.redrive': ({ operate }, body, actor) => {
    const ids = textsOf(body, 'ids')
    const { events } = operate
    if (body['preview'] === true) return events?.outboxRedrive(ids, true) ?? nothing()
    return operate.act(actor, 'outbox.redrive', { ids }, () => events?.outboxRedrive(ids, false) ?? nothing())
  },
  'outbox.purge': ({ operate }, body, actor) => {
    const ids = textsOf(body, 'ids')
    const { events } = operate
    if (body['preview'] === true) return events?.outboxPurge(ids, true) ?? nothing()
    return operate.act(actor, 'outbox.purge', { ids }, () => events?.outboxPurge(ids, false) ?? nothing())
  },
  'inbox.redrive': ({ operate }, body, actor) => {
    const [consumer, letters] = [textOf(body, 'consumer'), textsOf(body, 'letters')]
    const { events } = operate
    if (body['preview'] === true) return events?.inboxRedrive(consumer, letters, true) ?? nothing()
    const target = { consumer, letters }
    return operate.act(
      actor,
      'inbox.redrive',
      target,
      () => events?.inboxRedrive(consumer, letters, false) ?? nothing(),
    )
  },
  'inbox.purge': ({ operate }, body, actor) => {
    const [consumer, letters] = [textOf(body, 'consumer'), textsOf(body, 'letters')]
    const { events } = operate
    if (body['preview'] === true) return events?.inboxPurge(consumer, letters, true) ?? nothing()
    const target = { consumer, letters }
    return operate.act(actor, 'inbox.purge', target, () => events?.inboxPurge(consumer, letters, false) ?? nothing())
  },
  'run.cancel': ({ operate }, body, actor) => {
    const runId = textOf(body, 'runId')
    return operate.act(actor, 'run.cancel', { runId }, async () => operate.runs?.cancel(runId))
  },
  'run.resume': ({ operate }, body, actor) => {
    const runId = textOf(body, 'runId')
    return operate.act(actor, 'run.resume', { runId }, async () => operate.runs?.resume(runId))
  },
  'run.resolve': ({ operate, runs }, body, actor) => {
    const [runId, key] = [textOf(body, 'runId'), textOf(body, 'key')]
    const kind = oneOf(body, 'to', ['succeeded', 'failed', 'not_done'] as const)
    const error = typeof body['error'] === 'string' ? body['error'] : null
    return operate.act(actor, 'run.resolve', { runId, key, to: kind }, async () => {
      await runs.resolve(runId, key, { kind, result: body['value'] ?? null, error })
    })
  },
  sweep: ({ operate }, _body, actor) =>
    operate.act(actor, 'sweep', {}, async () => ({ removed: await operate.sweep() })),
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

/** Not there, or not in a state that allows it: the person looks again. */
export function refusedBy(error: unknown): { readonly status: 404 | 409; readonly detail: string } | null {
  if (!isOnceError(error)) return null
  if (error.code === 'not_found') return { status: 404, detail: error.message }
  const refused = error.code === 'not_resolvable' || error.code === 'fence_moved' || error.code === 'bad_input'
  return refused || error.code === 'bad_message' ? { status: 409, detail: error.message } : null
}

async function identityOf(operate: Operate, body: ActionBody): Promise<Identity> {
  const found = await operate.inspect({ id: textOf(body, 'id') })
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

/** As many as one page shows. */
const TEXTS_MOST = 1_000

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

const nothing = async () => []
