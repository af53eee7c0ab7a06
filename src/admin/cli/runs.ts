import { isOnceError } from '../../ledger/core/errors.ts'
import type { RunState } from '../../runs/entry.ts'
import type { RunOperator } from '../../runs/operate.ts'
import type { RunView } from '../../runs/view.ts'
import { type Asked, operatorCommand } from './operator.ts'
import { iso, json, pairs, plain, type Shown, table } from './output.ts'
import { Usage } from './usage.ts'

const states: readonly RunState[] = ['running', 'sleeping', 'unknown', 'succeeded', 'failed', 'cancelled']

export const runsCommand = operatorCommand({
  usage: 'runs [RUN_ID] [--state STATE] [--definition NAME] [--stuck] [--cancel | --resume]',
  about: `Runs, newest first; or one run with its steps.

  --state STATE      only those: ${states.join(', ')}
  --stuck            only those that are long due, and nobody drives
  --cancel           ends a run        --resume   goes on with a failed or parked one, after a fix

A step whose outcome is unknown is ended by \`onceonly resolve --run RUN_ID --step KEY\`.`,
  options: {
    state: { type: 'string' },
    definition: { type: 'string' },
    stuck: { type: 'boolean' },
    cancel: { type: 'boolean' },
    resume: { type: 'boolean' },
  },
  async run(asked) {
    const { admin, store, positionals, values } = asked
    const { runs } = admin
    if (runs === null) throw new Usage(`The ${store.name} store has no runs: they need SQL.`)
    const [runId] = positionals
    if (runId === undefined) return list(asked, runs)
    try {
      const run = await runs.get(runId)
      if (values['cancel'] === true) return await act(asked, run, 'cancel', () => runs.cancel(runId))
      if (values['resume'] === true) return await act(asked, run, 'resume', () => runs.resume(runId))
      return { data: run, text: runText(run) }
    } catch (error) {
      if (!isOnceError(error, 'not_found')) throw error
      return { data: null, text: `There is no run ${plain(runId)}.`, status: 1 }
    }
  },
})

/** A worker looks every few seconds. */
const STUCK_MS = 5 * 60_000

async function list({ admin, values, text, limit, since }: Asked, runs: RunOperator): Promise<Shown> {
  const given = text('state')
  const state = states.find((each) => each === given)
  if (given !== undefined && state === undefined) throw new Usage(`--state ${given} is none of ${states.join(', ')}.`)
  const definition = text('definition')
  const page = await runs.list({
    limit,
    ...(state === undefined ? {} : { state }),
    ...(definition === undefined ? {} : { definition }),
  })
  const now = await admin.now()
  const rows = page.runs
    .filter(({ startedAt }) => since === undefined || startedAt >= since)
    .filter(({ dueAt }) => values['stuck'] !== true || (dueAt !== null && dueAt < now - STUCK_MS))
    .map(({ input: _input, result: _result, ...run }) => run)
  const lines = rows.map((run) => [
    run.runId,
    run.definition,
    run.state,
    iso(run.startedAt),
    iso(run.dueAt),
    run.failure?.message ?? null,
  ])
  return {
    data: rows,
    text: table(['run', 'definition', 'state', 'started', 'due', 'failure'], lines, 'There is none.'),
  }
}

function runText(run: RunView): string {
  const steps = run.steps.map((step) => {
    const last = step.failures.at(-1)
    return [
      step.tick === 0 ? step.id : `${step.id} #${step.tick + 1}`,
      step.kind,
      step.state,
      step.attempts,
      step.key,
      last?.message ?? null,
    ]
  })
  return [
    pairs([
      ['run', plain(run.runId)],
      ['definition', plain(`${run.definition} version ${run.version}`)],
      ['state', run.state],
      ['started', iso(run.startedAt)],
      ['due', iso(run.dueAt)],
      ['ended', iso(run.endedAt)],
      ['input', json(run.input)],
      ['result', run.result === undefined ? null : json(run.result)],
      ['failure', run.failure === null ? null : plain(run.failure.message)],
    ]),
    table(['step', 'kind', 'state', 'attempts', 'key', 'last failure'], steps, 'No step is recorded.'),
  ].join('\n\n')
}

async function act(asked: Asked, run: RunView, what: string, work: () => Promise<unknown>): Promise<Shown> {
  await asked.confirm(`${what} the run ${plain(run.runId)}, which is ${run.state}?`)
  await asked.admin.act(asked.actor, `run.${what}`, { runId: run.runId }, work)
  return { data: { done: true, runId: run.runId }, text: 'Done.' }
}
