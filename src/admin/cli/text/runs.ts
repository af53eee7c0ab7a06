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
  'run.cancel': () => 'Cancelled.',
  'run.resume': () => 'Resumed.',
  'run.retry': () => 'Tried now.',
  'run.resolve': () => 'Resolved.',
  schedules: (schedules) => {
    const lines = schedules.map((each) => [
      each.name,
      each.run,
      `${each.cron} ${each.timezone}`,
      each.paused ? 'paused' : iso(each.nextAt),
      each.lastRun,
      each.started,
      each.skipped,
    ])
    return table(['schedule', 'definition', 'cron', 'next', 'last run', 'started', 'skipped'], lines, 'No schedules.')
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
    ])
    const head = ['queue', 'state', 'running', 'at most', 'per key', 'rate', 'waiting', 'blocked', 'delayed', 'unknown']
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
    step.failures.at(-1)?.message ?? null,
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
    ]),
    table(['step', 'kind', 'state', 'attempts', 'key', 'last failure'], steps, 'No step is recorded.'),
  ].join('\n\n')
}
