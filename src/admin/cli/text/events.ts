import { jsonText } from '../../../ledger/core/json-text.ts'
import type { AnswerOf } from '../../commands/table.ts'
import { iso, pairs, plain, span, table } from '../output.ts'
import type { Texts } from './texts.ts'

export const eventTexts: Texts = {
  events: ({ outbox, consumers }) => {
    const status =
      outbox === null
        ? 'There is no outbox in this store.'
        : pairs([
            ['waiting', outbox.pending],
            ['lag', span(outbox.lagMs)],
            ['failing keys', outbox.failing],
            ['parked keys', outbox.parkedKeys],
            ['dead letters', outbox.deadLetters],
            ['relays', outbox.relays],
            ['partitions without a relay', outbox.unheldPartitions],
          ])
    const lines = consumers.map((row) => [row.consumer, row.lastHour, row.deadLetters, row.failing, row.waitingKeys])
    const heads = ['consumer', 'last hour', 'dead letters', 'failing', 'waiting keys']
    return `${status}\n\n${table(heads, lines, 'No consumer has received a message in the last hour, and none fails.')}`
  },
  'outbox.dead': ({ rows }) => outboxText(rows),
  'outbox.redrive': ({ length }) => `${length} messages published again.`,
  'outbox.purge': ({ length }) => `${length} messages removed.`,
  'inbox.dead': ({ rows }) => inboxText(rows),
  'inbox.redrive': (rows) => redrivenText(rows),
  'inbox.purge': ({ length }) => `${length} dead letters removed.`,
  sagas: ({ sagas }) => {
    const lines = sagas.map(({ saga, states, pending }) => {
      const counts = Object.entries(states).map(([state, count]) => `${state} ${count}`)
      return [saga, counts.join(', '), pending]
    })
    return table(['saga', 'instances', 'pending'], lines, 'There are no sagas in this store.')
  },
  rooms: ({ rows }) => {
    const lines = rows.flatMap(({ room, head, regions }) =>
      regions.map(({ region, behind, lastAt }) => [room, region, head, behind, iso(lastAt)]),
    )
    return table(['room', 'region', 'entries', 'behind', 'newest'], lines, 'There are no rooms in this store.')
  },
  'saga.instances': ({ rows }) => {
    const lines = rows.map((row) => [row.id, row.state, row.version, iso(row.updatedAt)])
    return table(['instance', 'state', 'version', 'changed'], lines, 'No matches.')
  },
  'saga.instance': (found) => {
    const history = found.history.map((entry) => {
      const what = entry.did === 'handled' ? `→ ${entry.path.join(' → ') || entry.state}` : entry.did
      const why = entry.did === 'ignored' ? (entry.because ?? entry.why) : null
      return [iso(entry.at), entry.event, entry.state, what, why]
    })
    const pending = found.pending.map(({ event, dueAt }) => `${event} ${iso(dueAt)}`).join(', ')
    return [
      pairs([
        ['instance', plain(found.id)],
        ['state', plain(found.state)],
        ['since', iso(found.updatedAt)],
        ['data', jsonText(found.data)],
        ['pending', pending || null],
      ]),
      table(['at', 'event', 'in state', 'what', 'why'], history, 'Nothing happened yet.'),
    ].join('\n\n')
  },
}

export function outboxText(rows: AnswerOf<'outbox.dead'>['rows']): string {
  const lines = rows.map(({ message, attempts, parkedAt, reason }) => {
    return [message.id, message.topic, message.key, attempts, iso(parkedAt), reason]
  })
  return table(['id', 'topic', 'key', 'attempts', 'parked', 'reason'], lines, 'There are no dead letters.')
}

export function inboxText(rows: AnswerOf<'inbox.dead'>['rows']): string {
  const lines = rows.map(({ letter, message, reason, failures, parkedAt, failure }) => {
    return [letter, message.topic, reason, failures, iso(parkedAt), failure?.message ?? null]
  })
  const heads = ['dead letter', 'topic', 'reason', 'failures', 'parked', 'failure']
  return table(heads, lines, 'There are no dead letters.')
}

export function redrivenText(rows: AnswerOf<'inbox.redrive'>): string {
  const lines = rows.map((row) => [row.letter, row.id, row.topic, row.reason, row.result])
  return table(['dead letter', 'message', 'topic', 'reason', 'result'], lines, 'There are no dead letters.')
}
