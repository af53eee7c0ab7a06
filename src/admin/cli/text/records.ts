import type { Card } from '../../core/card.ts'
import type { Explanation, GuardDecision } from '../../core/explain.ts'
import type { UnknownOutcome } from '../../core/unknowns.ts'
import { type Cell, iso, paint, pairs, plain, span, table } from '../output.ts'
import type { Texts } from './texts.ts'

/** Characters of a stored response that are shown as text; JSON has all of it. */
const STORED_CHARS_MOST = 2_000
const NOT_FOUND =
  'Nothing has this id: it was never used, or what had it was removed. What a server keeps in tables of its own, such as\n' +
  'leads, imports and sequences, is found by its console (/console/find), and the ids of requests in its access log.'

export const recordTexts: Texts = {
  status: ({ store, now, states, standing, lastHour, oldestLease }) => {
    const { outbox, inboxDeadLetters = {}, runsStuck, runsUnknown = 0 } = standing
    const late = oldestLease === null ? '' : `, the oldest for ${span(now - (oldestLease.leaseUntil ?? now))}`
    const dead = Object.entries(inboxDeadLetters).map(([consumer, count]) => `${plain(consumer)} ${alarming(count)}`)
    const { claims, replays, inProgress, conflicts } = lastHour
    const rows: (readonly [string, string])[] = [
      ['store', `${store}, its time ${iso(now)}`],
      ...Object.entries(states).map(([state, count]) => [state, String(count)] as const),
      [
        'last hour',
        `${claims} claims, ${replays} replays, ${inProgress} refused while running, ${conflicts} for another payload`,
      ],
      ['leases past end', `${alarming(standing.staleLeases)}${late}`],
      ['unknown outcomes', alarming(standing.unknownWaiting)],
    ]
    if (outbox !== undefined) {
      const letters = `${alarming(outbox.parkedKeys)} parked keys, ${alarming(outbox.deadLetters)} dead letters`
      rows.push(['outbox', `${outbox.pending} waiting, lag ${span(outbox.lagMs)}, ${letters}`])
    }
    if (dead.length > 0) rows.push(['inbox', `dead letters: ${dead.join(', ')}`])
    if (runsStuck !== undefined) {
      rows.push(['runs', `${alarming(runsStuck)} stuck, ${alarming(runsUnknown)} steps unknown or runs parked`])
    }
    return pairs(rows)
  },
  records: ({ rows }) => cards(rows),
  search: ({ rows }) => cards(rows),
  find: ({ rows }) => {
    if (rows.length === 0) return { text: NOT_FOUND, status: 1 }
    const lines = rows.map(({ kind, about, state, at, look }) => [kind, state, about, iso(at), look])
    return table(['what', 'state', 'about', 'at', 'shown by'], lines, '')
  },
  inspect: ({ stored, storedHidden: _hidden, ...found }) => {
    if (stored === null) return explanationText(found)
    const shown = plain(stored.slice(0, STORED_CHARS_MOST))
    const more = stored.length > STORED_CHARS_MOST ? '… (--json shows all of it)' : ''
    return `${explanationText(found)}\n${paint('bold', 'Response to retries')}\n  ${shown}${more}`
  },
  explain: ({ rows, cursor }) => {
    if (rows.length > 0) return rows.map(explanationText).join('\n\n')
    const text =
      cursor === null
        ? 'No record has this key: it was never used, or its record has expired and was swept.'
        : 'None of the newest records has this key. `onceonly inspect TENANT CALLER OPERATION KEY` finds any record.'
    return { text, status: 1 }
  },
  stale: ({ rows }, { now }) =>
    cards(rows, 'No lease is past its end.', [
      'past its end',
      ({ leaseUntil }) => (leaseUntil === null ? null : span(now - leaseUntil)),
    ]),
  unknowns: ({ rows }, { now }) =>
    rows.length === 0 ? 'Nothing waits for a decision.' : rows.map((each) => unknownText(each, now)).join('\n'),
  conflicts: ({ rows }) =>
    cards(
      rows,
      'No conflicts.',
      ['another payload', ({ conflicts }) => conflicts],
      ['while it ran', ({ inProgress }) => inProgress],
    ),
  busiest: ({ rows }) => {
    const heads = ['claims', 'replays', 'in progress', 'conflicts', 'tenant', 'caller', 'operation']
    const lines = rows.map((row) => {
      return [row.claims, row.replays, row.inProgress, row.conflicts, row.tenant, row.caller, row.operation]
    })
    return table(heads, lines, 'No attempts.')
  },
  release: () => 'Released.',
  forget: () => 'Forgotten.',
  resolve: () => 'Resolved.',
}

function alarming(count: number): string {
  return count > 0 ? paint('red', String(count)) : String(count)
}

export function explanationText({ record, answers, timeline, guard }: Explanation): string {
  const answered = answers.map(({ question, answer, alarming: isAlarming }) => {
    return `${paint('bold', question.padEnd(38))} ${paint(isAlarming ? 'red' : 'green', plain(answer))}`
  })
  const moments = timeline.map(
    ({ at, what, note }) => `  ${iso(at)}  ${plain(what)}${note === null ? '' : `  ${plain(note)}`}`,
  )
  const parts = [`record ${record.id}, fence ${record.fence}`, ...answered]
  if (guard !== null) parts.push(paint('bold', 'What the guard decided'), ...guardLines(guard))
  return [...parts, paint('bold', 'What happened'), ...moments].join('\n')
}

function guardLines(guard: GuardDecision): string[] {
  const { operation, hash, guarded, windowMs, windowEndsAt, original, blocked, lastBlockedAt } = guard
  const last = lastBlockedAt === null ? '' : `, the last ${iso(lastBlockedAt)}`
  return [
    `  ${guarded ? 'sent under its lock' : 'sent WITHOUT its lock: identical content may have been sent as well'}`,
    `  lock      ${plain(operation)} ${plain(hash)}`,
    `  window    ${span(windowMs)}, until ${iso(windowEndsAt)}`,
    `  original  ${plain(original ?? 'not known yet')}`,
    `  blocked   ${blocked === 1 ? '1 duplicate' : `${blocked} duplicates`}${last}`,
  ]
}

function unknownText(outcome: UnknownOutcome, now: number): string {
  const { kind, since, attempts, failure, asked, end } = outcome
  const plan = kind === 'step' && outcome.plan !== null ? `${outcome.plan} ` : ''
  const lines: (readonly [string, string | null])[] = [
    ['since', `${iso(since)}, for ${span(now - since)}; ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}`],
    ['asked', asked === null ? null : plain(plan + asked)],
    ['failure', failure === null ? null : plain(`${failure.name}: ${failure.message}`)],
    ['end it', plain(end)],
  ]
  const shown = lines.filter(([, value]) => value !== null).map(([name, value]) => `  ${name.padEnd(8)}${value}`)
  return [`${paint('bold', kind.replace('_', ' ').padEnd(7))} ${plain(nameOf(outcome))}`, ...shown].join('\n')
}

function nameOf(outcome: UnknownOutcome): string {
  switch (outcome.kind) {
    case 'record': {
      const { tenant, caller, operation, key } = outcome.identity
      return `${operation} of ${tenant}/${caller} under the key ${key}, record ${outcome.id}`
    }
    case 'step':
      return `${outcome.definition}, run ${outcome.runId}, step ${outcome.step}, tick ${outcome.tick}`
    case 'run':
      return `${outcome.definition}, run ${outcome.runId}, parked`
    case 'dead_letter':
      return `topic ${outcome.topic}, of ${outcome.consumer === null ? 'the outbox' : `the consumer ${outcome.consumer}`}, ${outcome.id}`
  }
}

type Column = readonly [head: string, cell: (card: Card) => Cell]

const replaysColumn: Column = ['replays', ({ replays }) => replays]

function cards(rows: readonly Card[], empty = 'No records.', ...columns: readonly Column[]): string {
  const first = columns.length === 0 ? [replaysColumn] : columns
  const lines = rows.map((card) => {
    const { tenant, caller, operation, key } = card.identity
    const cells = first.map(([, cell]) => cell(card))
    return [...cells, card.state, tenant, caller, operation, key, card.attempts, iso(card.claimedAt), card.id]
  })
  const heads = [
    ...first.map(([head]) => head),
    'state',
    'tenant',
    'caller',
    'operation',
    'key',
    'attempts',
    'claimed',
    'record',
  ]
  return table(heads, lines, empty)
}
