import type { Status } from '../core/admin.ts'
import type { Card } from '../core/card.ts'
import type { Explanation, GuardDecision } from '../core/explain.ts'
import type { UnknownOutcome } from '../core/unknowns.ts'
import { type Asked, identityOf, named, operatorCommand } from './operator.ts'
import { type Cell, iso, paint, pairs, plain, type Shown, span, table } from './output.ts'
import { Usage } from './usage.ts'

export const statusCommand = operatorCommand({
  usage: 'status',
  about:
    'How things stand: records by state, attempts of the last hour, the oldest lease past its end, lag of the outbox,\nunknown outcomes, dead letters, runs that are stuck.',
  async run({ admin }) {
    const status = await admin.status()
    return { data: status, text: statusText(status) }
  },
})

function statusText({ store, now, states, standing, lastHour, oldestLease }: Status): string {
  const { outbox, inboxDeadLetters = {}, runsStuck, runsUnknown = 0 } = standing
  const needs = (count: number) => (count > 0 ? paint('red', String(count)) : String(count))
  const late = oldestLease === null ? '' : `, the oldest for ${span(now - (oldestLease.leaseUntil ?? now))}`
  const dead = Object.entries(inboxDeadLetters).map(([consumer, count]) => `${plain(consumer)} ${needs(count)}`)
  const rows: (readonly [string, string])[] = [
    ['store', `${store}, its time ${iso(now)}`],
    ...Object.entries(states).map(([state, count]) => [state, String(count)] as const),
    [
      'last hour',
      `${lastHour.claims} claims, ${lastHour.replays} replays, ${lastHour.inProgress} refused while running, ${lastHour.conflicts} for another payload`,
    ],
    ['leases past end', `${needs(standing.staleLeases)}${late}`],
    ['unknown outcomes', needs(standing.unknownWaiting)],
  ]
  if (outbox !== undefined) {
    const letters = `${needs(outbox.parkedKeys)} parked keys, ${needs(outbox.deadLetters)} dead letters`
    rows.push(['outbox', `${outbox.pending} waiting, lag ${span(outbox.lagMs)}, ${letters}`])
  }
  if (dead.length > 0) rows.push(['inbox', `dead letters: ${dead.join(', ')}`])
  if (runsStuck !== undefined)
    rows.push(['runs', `${needs(runsStuck)} stuck, ${needs(runsUnknown)} steps unknown or runs parked`])
  return pairs(rows)
}

export const inspectCommand = operatorCommand({
  usage: 'inspect TENANT CALLER OPERATION KEY [--batch B] | --id RECORD_ID',
  about:
    'One record: the ten questions of the runbook, answered, and what happened to it. --answer shows what retries get.',
  options: { ...named, answer: { type: 'boolean' } },
  async run(asked) {
    const { admin, values } = asked
    const id = asked.text('id')
    const identity = id === undefined ? await identityOf(asked) : { id }
    const found = await admin.inspect(identity)
    if (found === null)
      return { data: null, text: 'Nothing is recorded there; the next attempt is a first one.', status: 1 }
    const stored = values['answer'] === true ? await admin.answer(found.record.id) : undefined
    const text = explanationText(found)
    return {
      data: { ...found, ...(stored === undefined ? {} : { stored }) },
      text: stored === undefined ? text : `${text}\n\n${stored ?? 'no answer is kept'}`,
    }
  },
})

/** Pages of the newest records that are looked through for a key, and calls that look for conflicts. */
const LOOKED_MOST = 1_000

export const explainCommand = operatorCommand({
  usage: 'explain KEY',
  about:
    'Everything that has this key, whoever sent it, each with the ten answers. Also by record id, the id of a message, or\nthe hash of a guard. Looks through the records, newest first, also those that have\nexpired, or were released or forgotten, until they are swept.',
  limit: 10,
  async run({ admin, positionals, limit }) {
    const [key] = positionals
    if (key === undefined) throw new Usage('Which key?')
    const found: Explanation[] = []
    let cursor: string | null = null
    for (let page = 0; page < LOOKED_MOST && found.length < limit; page++) {
      const next = await admin.search(key, { cursor, limit })
      for (const { id } of next.rows) {
        const each = await admin.inspect({ id })
        if (each !== null) found.push(each)
      }
      cursor = next.cursor
      if (cursor === null) break
    }
    if (found.length === 0) {
      return {
        data: [],
        text:
          cursor === null
            ? 'No record has this key. It never came, or its record has ended and was swept.'
            : `None of the newest ${LOOKED_MOST} pages of records has this key; \`onceonly inspect TENANT CALLER OPERATION KEY\` finds any.`,
        status: 1,
      }
    }
    return { data: found, text: found.map(explanationText).join('\n\n') }
  },
})

function explanationText({ record, answers, timeline, guard }: Explanation): string {
  const asked = answers.map(({ question, answer, alarming }) => {
    return `${paint('bold', question.padEnd(38))} ${paint(alarming ? 'red' : 'green', plain(answer))}`
  })
  const told = timeline.map(
    ({ at, what, note }) => `  ${iso(at)}  ${plain(what)}${note === null ? '' : `  ${plain(note)}`}`,
  )
  const parts = [`record ${record.id}, fence ${record.fence}`, ...asked]
  if (guard !== null) parts.push(paint('bold', 'What the guard decided'), ...guardLines(guard))
  return [...parts, paint('bold', 'What happened'), ...told].join('\n')
}

function guardLines(guard: GuardDecision): string[] {
  const { operation, hash, guarded, windowMs, windowEndsAt, original, blocked, lastBlockedAt } = guard
  const last = lastBlockedAt === null ? '' : `, the last ${iso(lastBlockedAt)}`
  return [
    `  ${guarded ? 'sent under its lock' : 'sent WITHOUT its lock: an identical content may have gone out beside it'}`,
    `  lock      ${plain(operation)} ${plain(hash)}`,
    `  window    ${span(windowMs)}, until ${iso(windowEndsAt)}`,
    `  original  ${plain(original ?? 'not known yet')}`,
    `  blocked   ${blocked === 1 ? '1 duplicate' : `${blocked} duplicates`}${last}`,
  ]
}

export const staleCommand = operatorCommand({
  usage: 'stale',
  about: 'Leases past their end that nobody has taken over, oldest first.',
  async run({ admin, limit, since }) {
    const rows = (await admin.stale({ limit })).filter(({ claimedAt }) => since === undefined || claimedAt >= since)
    const now = await admin.now()
    const late = ({ leaseUntil }: Card) => (leaseUntil === null ? null : span(now - leaseUntil))
    return cards(rows, 'No lease is past its end.', ['past its end', late])
  },
})

export const unknownsCommand = operatorCommand({
  usage: 'unknowns',
  about:
    'Everything whose outcome is unknown: records, messages among them (operation messages.deliver), steps of runs, and\nparked runs. Each with since when, what the provider was asked, and the command that ends it.',
  async run({ admin, limit, since }) {
    const found: UnknownOutcome[] = []
    let cursor: string | null = null
    do {
      const page = await admin.unknowns({ limit, cursor })
      found.push(...page.rows.filter((each) => since === undefined || each.since >= since))
      cursor = page.cursor
    } while (cursor !== null && found.length < limit)
    const now = await admin.now()
    const text = found.map((each) => unknownText(each, now)).join('\n')
    return { data: found, text: found.length === 0 ? 'No outcome is unknown.' : text }
  },
})

function unknownText(outcome: UnknownOutcome, now: number): string {
  const { kind, since, attempts, failure, asked, end } = outcome
  const plan = kind === 'step' && outcome.plan !== null ? `${outcome.plan} ` : ''
  const lines: (readonly [string, string | null])[] = [
    ['since', `${iso(since)}, for ${span(now - since)}; ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}`],
    ['asked', asked === null ? null : plain(plan + asked)],
    ['failure', failure === null ? null : plain(`${failure.name}: ${failure.message}`)],
    ['end it', plain(end)],
  ]
  const told = lines.filter(([, value]) => value !== null).map(([name, value]) => `  ${name.padEnd(8)}${value}`)
  return [`${paint('bold', kind.padEnd(7))} ${plain(nameOf(outcome))}`, ...told].join('\n')
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
  }
}

export const conflictsCommand = operatorCommand({
  usage: 'conflicts',
  about: 'Records whose key was used again with another payload, or while they ran, newest first.',
  async run({ admin, limit, since }) {
    const found: Card[] = []
    let cursor: string | null = null
    for (let looked = 0; looked < LOOKED_MOST && found.length < limit; looked++) {
      const page = await admin.conflicts({ limit, cursor, ...(since === undefined ? {} : { since }) })
      found.push(...page.rows)
      cursor = page.cursor
      if (cursor === null) break
    }
    return cards(found.slice(0, limit), 'Nobody was refused.', [
      'refused',
      ({ conflicts, inProgress }) => conflicts + inProgress,
    ])
  },
})

function cards(rows: readonly Card[], empty: string, [head, cell]: readonly [string, (card: Card) => Cell]): Shown {
  const lines = rows.map((card) => {
    const { tenant, caller, operation, key } = card.identity
    return [cell(card), card.state, tenant, caller, operation, key, card.attempts, iso(card.claimedAt), card.id]
  })
  const heads = [head, 'state', 'tenant', 'caller', 'operation', 'key', 'attempts', 'claimed', 'record']
  return { data: rows, text: table(heads, lines, empty) }
}

export const topCommand = operatorCommand({
  usage: 'top',
  about: 'The callers with the most attempts of the last hour, or since --since.',
  limit: 20,
  async run({ admin, limit, since }: Asked) {
    const rows = await admin.busiest({ limit, ...(since === undefined ? {} : { since }) })
    const heads = ['claims', 'replays', 'in progress', 'conflicts', 'tenant', 'caller', 'operation']
    const lines = rows.map((row) => {
      return [row.claims, row.replays, row.inProgress, row.conflicts, row.tenant, row.caller, row.operation]
    })
    return { data: rows, text: table(heads, lines, 'Nobody has come.') }
  },
})
