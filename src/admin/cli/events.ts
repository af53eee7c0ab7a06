import type { DeadLetters } from '../core/dead-letters.ts'
import type { Sagas } from '../core/sagas.ts'
import { type Asked, operatorCommand } from './operator.ts'
import { iso, json, pairs, plain, type Shown, span, table } from './output.ts'
import { Usage } from './usage.ts'

const acting = {
  dead: { type: 'boolean' },
  redrive: { type: 'string', multiple: true },
  purge: { type: 'string', multiple: true },
  preview: { type: 'boolean' },
} as const

export const outboxCommand = operatorCommand({
  usage: 'outbox [--dead] [--redrive ID… | --purge ID…] [--preview]',
  about: `What waits to be published, and what was given up.

  --dead         the dead letters
  --redrive ID   publishes a dead letter again, with all others of its key; may be repeated; \`all\` is a page of them
  --purge ID     removes a dead letter for good
  --preview      only tells what would be done`,
  options: acting,
  async run(asked) {
    const events = eventsOf(asked)
    const action = actionOf(asked)
    if (action === null && asked.values['dead'] !== true) return outboxStatus(events)
    if (action === null) {
      const { rows } = await events.outboxDead({ limit: asked.limit })
      return { data: rows, text: outboxTable(rows) }
    }
    const ids = action.ids ?? (await events.outboxDead({ limit: asked.limit })).rows.map(({ message }) => message.id)
    const act = action.what === 'redrive' ? events.outboxRedrive : events.outboxPurge
    const preview = await act(ids, true)
    if (preview.length === 0) return { data: [], text: 'There is no such dead letter.', status: 1 }
    if (asked.values['preview'] === true) return { data: preview, text: outboxTable(preview) }
    await asked.confirm(`${action.what === 'redrive' ? 'Publish again' : 'Remove'} ${preview.length} messages?`)
    const done = await asked.admin.act(asked.actor, `outbox.${action.what}`, { ids }, () => act(ids, false))
    return {
      data: done,
      text: `${done.length} messages: ${action.what === 'redrive' ? 'published again' : 'removed'}.`,
    }
  },
})

async function outboxStatus(events: DeadLetters): Promise<Shown> {
  const status = await events.outboxStatus()
  if (status === null) return { data: null, text: 'There is no outbox in this store.' }
  return {
    data: status,
    text: pairs([
      ['waiting', status.pending],
      ['lag', span(status.lagMs)],
      ['failing keys', status.failing],
      ['parked keys', status.parkedKeys],
      ['dead letters', status.deadLetters],
      ['relays', status.relays],
      ['partitions that nobody holds', status.unheldPartitions],
    ]),
  }
}

function outboxTable(rows: Awaited<ReturnType<DeadLetters['outboxDead']>>['rows']): string {
  const lines = rows.map(({ message, attempts, parkedAt, reason }) => {
    return [message.id, message.topic, message.key, attempts, iso(parkedAt), reason]
  })
  return table(['id', 'topic', 'key', 'attempts', 'parked', 'reason'], lines, 'There are no dead letters.')
}

export const inboxCommand = operatorCommand({
  usage: 'inbox [CONSUMER --dead] [--redrive LETTER… | --purge LETTER…] [--preview]',
  about: `Consumers: what fails, what waits for its turn, what was given up.

  --dead            the dead letters of a consumer
  --redrive LETTER  publishes a message again, through the outbox, so that the consumer handles it; \`all\` is a page of them
  --purge LETTER    removes a dead letter for good; copies of it stay duplicates
  --preview         only tells what would be done`,
  options: acting,
  async run(asked) {
    const events = eventsOf(asked)
    const [consumer] = asked.positionals
    if (consumer === undefined) {
      if (actionOf(asked) !== null || asked.values['dead'] === true) throw new Usage('Of which consumer?')
      const rows = await events.consumers()
      const lines = rows.map((row) => [row.consumer, row.lastHour, row.deadLetters, row.failing, row.waitingKeys])
      const heads = ['consumer', 'last hour', 'dead letters', 'failing', 'waiting keys']
      return { data: rows, text: table(heads, lines, 'No consumer has seen a message lately, and none has trouble.') }
    }
    const action = actionOf(asked)
    if (action === null) return inboxDead(events, consumer, asked.limit)
    const letters =
      action.ids ?? (await events.inboxDead(consumer, { limit: asked.limit })).rows.map(({ letter }) => letter)
    return action.what === 'redrive'
      ? inboxRedrive(asked, events, consumer, letters)
      : inboxPurge(asked, events, consumer, letters)
  },
})

async function inboxDead(events: DeadLetters, consumer: string, limit: number): Promise<Shown> {
  const { rows } = await events.inboxDead(consumer, { limit })
  const lines = rows.map(({ letter, message, reason, failures, parkedAt, failure }) => {
    return [letter, message.topic, reason, failures, iso(parkedAt), failure?.message ?? null]
  })
  const heads = ['letter', 'topic', 'reason', 'failures', 'parked', 'failure']
  return { data: rows, text: table(heads, lines, `${plain(consumer)} has no dead letters.`) }
}

async function inboxRedrive(
  asked: Asked,
  events: DeadLetters,
  consumer: string,
  letters: readonly string[],
): Promise<Shown> {
  const show = (rows: Awaited<ReturnType<DeadLetters['inboxRedrive']>>): string =>
    table(
      ['letter', 'message', 'topic', 'reason', 'result'],
      rows.map((row) => [row.letter, row.id, row.topic, row.reason, row.result]),
      'There is no such dead letter.',
    )
  const preview = await events.inboxRedrive(consumer, letters, true)
  if (preview.length === 0) return { data: [], text: show(preview), status: 1 }
  if (asked.values['preview'] === true) return { data: preview, text: show(preview) }
  if (preview.some(({ result }) => result === 'ordered')) {
    throw new Usage(
      `${consumer} keeps the order of its keys: redrive in its own process, with inbox.deadLetters.redrive.`,
    )
  }
  await asked.confirm(`Publish ${preview.length} messages again, for ${plain(consumer)}?`)
  const done = await asked.admin.act(asked.actor, 'inbox.redrive', { consumer, letters }, () =>
    events.inboxRedrive(consumer, letters, false),
  )
  return { data: done, text: show(done) }
}

async function inboxPurge(
  asked: Asked,
  events: DeadLetters,
  consumer: string,
  letters: readonly string[],
): Promise<Shown> {
  const preview = await events.inboxPurge(consumer, letters, true)
  if (preview.length === 0) return { data: [], text: 'There is no such dead letter.', status: 1 }
  if (asked.values['preview'] === true) return { data: preview, text: `${preview.length} letters would be removed.` }
  await asked.confirm(`Remove ${preview.length} dead letters of ${plain(consumer)} for good?`)
  const done = await asked.admin.act(asked.actor, 'inbox.purge', { consumer, letters }, () =>
    events.inboxPurge(consumer, letters, false),
  )
  return { data: done, text: `${done.length} letters are removed.` }
}

function eventsOf({ admin, store }: Asked): DeadLetters {
  if (admin.events === null) throw new Usage(`The ${store.name} store has no outbox and no inbox: they need SQL.`)
  return admin.events
}

/** Null ids stand for "all", which is a page of them. */
function actionOf({
  values,
}: Asked): { readonly what: 'redrive' | 'purge'; readonly ids: readonly string[] | null } | null {
  const [redrive, purge] = [values['redrive'], values['purge']]
  if (redrive !== undefined && purge !== undefined) throw new Usage('Say either --redrive or --purge.')
  const given = redrive ?? purge
  if (!Array.isArray(given)) return null
  const ids = given.map(String)
  return { what: redrive === undefined ? 'purge' : 'redrive', ids: ids.includes('all') ? null : ids }
}

export const sagasCommand = operatorCommand({
  usage: 'sagas [SAGA [INSTANCE]] [--state STATE]',
  about:
    'Sagas and how many instances are in which state; the instances of one; or one instance with all that happened to it.',
  options: { state: { type: 'string' } },
  async run(asked) {
    const { admin, store, positionals } = asked
    if (admin.sagas === null) throw new Usage(`The ${store.name} store has no sagas: they need SQL.`)
    const [saga, id] = positionals
    if (saga === undefined) return sagaList(admin.sagas)
    if (id === undefined) return instanceList(admin.sagas, saga, asked)
    const found = await admin.sagas.get(saga, id)
    if (found === null) return { data: null, text: `${plain(saga)} has no instance ${plain(id)}.`, status: 1 }
    const history = found.history.map((entry) => {
      const what = entry.did === 'handled' ? `→ ${entry.path.join(' → ') || entry.state}` : entry.did
      const why = entry.did === 'ignored' ? (entry.because ?? entry.why) : null
      return [iso(entry.at), entry.event, entry.state, what, why]
    })
    const text = [
      pairs([
        ['instance', plain(found.id)],
        ['state', plain(found.state)],
        ['since', iso(found.updatedAt)],
        ['data', json(found.data)],
        ['pending', found.pending.map(({ event, dueAt }) => `${event} ${iso(dueAt)}`).join(', ') || null],
      ]),
      table(['at', 'event', 'in state', 'what', 'why'], history, 'Nothing happened yet.'),
    ]
    return { data: found, text: text.join('\n\n') }
  },
})

async function sagaList(sagas: Sagas): Promise<Shown> {
  const rows = await sagas.list()
  const lines = rows.map(({ saga, states, pending }) => {
    return [
      saga,
      Object.entries(states)
        .map(([state, count]) => `${state} ${count}`)
        .join(', '),
      pending,
    ]
  })
  return { data: rows, text: table(['saga', 'instances', 'pending'], lines, 'There are no sagas in this store.') }
}

async function instanceList(sagas: Sagas, saga: string, { limit, text }: Asked): Promise<Shown> {
  const state = text('state')
  const { rows } = await sagas.instances(saga, { limit, ...(state === undefined ? {} : { state }) })
  const lines = rows.map((row) => [row.id, row.state, row.version, iso(row.updatedAt)])
  return { data: rows, text: table(['instance', 'state', 'version', 'changed'], lines, 'There is none.') }
}
