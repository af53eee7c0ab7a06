import { jsonText } from '../../../ledger/core/json-text.ts'
import type { AnswerOf } from '../../commands/table.ts'
import { iso, pairs, plain, table } from '../output.ts'
import type { Texts } from './texts.ts'

export const runTexts: Texts = {
  runs: ({ rows }) => {
    const lines = rows.map((run) => [
      run.runId,
      run.definition,
      run.state,
      iso(run.startedAt),
      iso(run.dueAt),
      run.failure?.message ?? null,
    ])
    return table(['run', 'definition', 'state', 'started', 'due', 'failure'], lines, 'No matches.')
  },
  run: runText,
  'run.tree': ({ rows, more }) => {
    const lines = rows.map((run) => [
      `${'  '.repeat(run.depth)}${run.runId}`,
      run.definition,
      run.state,
      iso(run.startedAt),
      iso(run.endedAt),
      run.continuedAs === null ? run.failure : `continues as ${run.continuedAs}`,
    ])
    const shown = table(['run', 'definition', 'state', 'started', 'ended', 'note'], lines, 'No runs.')
    return more ? `${shown}\nIt has more runs: ask for the tree of one of them.` : shown
  },
  'run.fork': ({ runId }) => `${plain(runId)} was started.`,
  'run.events': ({ events, ended, runId, state }) => {
    const lines = events.map((event) => [event.cursor, iso(event.at), event.name, jsonText(event.value ?? null)])
    const shown = table(['cursor', 'at', 'event', 'value'], lines, 'No events.')
    return ended ? `${shown}\n${plain(runId)} has ended as ${state}.` : shown
  },
  'run.cancel': ({ done }) => (done ? 'Cancelled.' : { text: 'Nothing was done: it had ended before.', status: 1 }),
  'run.resume': () => 'Resumed.',
  'run.retry': () => 'Tried now.',
  'run.resolve': () => 'Resolved.',
  schedules: (schedules) => {
    const lines = schedules.map((each) => [
      each.name,
      each.run,
      `${each.cron} ${each.timezone}`,
      nextOf(each),
      each.lastRun,
      each.started,
      each.skipped,
      each.failure?.message ?? null,
    ])
    return table(
      ['schedule', 'definition', 'cron', 'next', 'last run', 'started', 'skipped', 'failure'],
      lines,
      'No schedules.',
    )
  },
  'schedule.pause': () => 'Paused.',
  'schedule.resume': () => 'Resumed.',
  'schedule.trigger': ({ runId }) => `${runId} starts as soon as a process that has the schedule sees it.`,
  'queue.list': (queues) => {
    const lines = queues.map((each) => [
      each.name,
      each.paused ? 'paused' : 'active',
      each.running,
      each.concurrency ?? 'any',
      each.perKey ?? 'any',
      each.rate === null ? 'any' : `${each.rate.limit} in ${each.rate.perMs} ms`,
      each.waiting,
      each.blocked,
      each.delayed,
      each.unknown,
      iso(each.waitingSince),
    ])
    const counts = ['running', 'at most', 'per key', 'rate', 'waiting', 'blocked', 'delayed', 'unknown']
    const head = ['queue', 'state', ...counts, 'waiting since']
    return table(head, lines, 'No queues.')
  },
  'queue.pause': () => 'Paused.',
  'queue.resume': () => 'Resumed.',
  'runs.cancel': bulkText,
  'runs.resume': bulkText,
  'runs.retry': bulkText,
}

export function bulkText({ rows, more }: AnswerOf<'runs.cancel'>): string {
  const lines = rows.map((run) => [
    run.result.replace('_', ' '),
    run.runId,
    run.definition,
    run.state,
    iso(run.startedAt),
    run.note ?? run.failure,
  ])
  const shown = table(['result', 'run', 'definition', 'state', 'started', 'why'], lines, 'No matches.')
  return more ? `${shown}\nMore runs match: run the command again for them.` : shown
}

export function runText(run: AnswerOf<'run'>): string {
  const steps = run.steps.map((step) => [
    step.tick === 0 ? step.id : `${step.id} #${step.tick + 1}`,
    step.kind,
    step.state,
    step.attempts,
    step.key,
    step.child ?? step.failures.at(-1)?.message ?? null,
  ])
  return [
    pairs([
      ['run', plain(run.runId)],
      ['definition', plain(`${run.definition} version ${run.version}`)],
      ['state', run.state],
      ['started', iso(run.startedAt)],
      ['due', iso(run.dueAt)],
      ['ended', iso(run.endedAt)],
      ['input', jsonText(run.input)],
      ['result', run.result === undefined ? null : jsonText(run.result)],
      ['failure', run.failure === null ? null : plain(run.failure.message)],
      ...relationsOf(run),
    ]),
    table(['step', 'kind', 'state', 'attempts', 'key', 'child, or last failure'], steps, 'No step is recorded.'),
  ].join('\n\n')
}

/** Where it stands among other runs, and what is known of it besides; only what there is. */
function relationsOf(run: AnswerOf<'run'>): [name: string, value: string][] {
  const { queue, parent, restarts, forkedFrom, continuedAs, attributes, deadlineAt, cancelledAt } = run
  const relations: [name: string, value: string | null][] = [
    ['queue', queue && plain(placeOf(queue))],
    ['parent', parent && plain(parent)],
    ['restarts', restarts && plain(restarts)],
    ['forked from', forkedFrom && plain(`${forkedFrom.runId} at ${forkedFrom.key}`)],
    ['continued as', continuedAs && plain(continuedAs)],
    ['attributes', Object.keys(attributes).length === 0 ? null : plain(jsonText(attributes))],
    ['fails at', iso(deadlineAt)],
    ['cancelled', iso(cancelledAt)],
  ]
  return relations.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))
}

function placeOf({
  name,
  key,
  priority,
  dedupKey,
  readyAt,
  admittedAt,
}: NonNullable<AnswerOf<'run'>['queue']>): string {
  const parts = [
    name,
    key === '' ? null : `key ${key}`,
    dedupKey === null ? null : `dedupKey ${dedupKey}`,
    priority === 0 ? null : `priority ${priority}`,
    admittedAt === null ? `waits since ${iso(readyAt)}` : `let in ${iso(admittedAt)}`,
  ]
  return parts.filter((part) => part !== null).join(', ')
}

function nextOf({ paused, failure, nextAt }: AnswerOf<'schedules'>[number]): string | null {
  if (paused) return 'paused'
  return failure === null ? iso(nextAt) : `cannot start, again at ${iso(failure.retryAt)}`
}
