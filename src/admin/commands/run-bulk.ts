import { isOnceError } from '../../ledger/core/errors.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { RunView } from '../../runs/view.ts'
import { texts, type Values, whole, withDefault } from './argument.ts'
import { act, type Context, given } from './command.ts'
import { badArgument, notFound } from './refusal.ts'
import { filtersOf, runFilter, runsOf } from './run-filter.ts'

/** What can be done to many runs at once. */
type How = 'cancel' | 'resume' | 'retry'

/** One run of a bulk action, as it would be acted on, or was. */
export interface BulkRun {
  readonly runId: string
  readonly definition: string
  readonly state: RunView['state']
  readonly startedAt: number
  readonly failure: string | null
  /** In a preview `would_change` or `skipped`; afterwards `changed`, `skipped` or `refused`. */
  readonly result: 'would_change' | 'changed' | 'skipped' | 'refused'
  /** Why it was skipped or refused. */
  readonly note: string | null
}

export interface BulkAnswer {
  readonly rows: readonly BulkRun[]
  /** There may be more that match: run it again. */
  readonly more: boolean
}

/** Runs of one call; each is an action of its own, and a line of the audit. */
const bulkLimit = withDefault(whole('how many runs at the most', { least: 1, most: limits.pageRows }), limits.pageRows)

const picked = {
  runIds: withDefault(texts('the runs; all that the filters leave, when left out'), []),
  ...runFilter,
  limit: bulkLimit,
}

/** Past participle and the condition, for each of them. */
const ways: Readonly<Record<How, { readonly verb: string; skips(run: Summary): string | null }>> = {
  cancel: { verb: 'Cancel', skips: ({ endedAt, state }) => (endedAt === null ? null : `it has ended as ${state}`) },
  resume: {
    verb: 'Resume',
    skips: ({ state }) =>
      state === 'failed' || state === 'cancelled' || state === 'unknown'
        ? null
        : `it is ${state}, neither failed, cancelled nor parked`,
  },
  retry: {
    verb: 'Retry',
    skips: ({ endedAt, state }) => (endedAt === null ? null : `it has ended as ${state}; resume it where it failed`),
  },
}

export const bulkRunCommands = {
  'runs.cancel': bulk('cancel', 'end many runs'),
  'runs.resume': bulk('resume', 'continue many failed, cancelled or parked runs, after a fix'),
  'runs.retry': bulk('retry', 'try steps that wait for their next attempt now, in many runs'),
}

function bulk(how: How, summary: string) {
  const { verb } = ways[how]
  return act({
    summary,
    details:
      'Name the runs, or say which by --state, --definition, --queue, --scope, --since or --before. --preview shows them first.',
    arguments: picked,
    words: ['runIds'],
    needs: ['runs'],
    find: (context, args) => pick(how, context, args),
    forViewer: (found) => found,
    target: ({ runIds: _ids, limit: _limit, since: _since, before: _before, ...filter }, { rows }) => ({
      ...given(filter),
      runs: rows.filter(({ result }) => result === 'would_change').length,
    }),
    question(_args, { rows }) {
      const count = rows.filter(({ result }) => result === 'would_change').length
      const skipped = rows.length === count ? '' : `, and skip ${rows.length - count}`
      return `${verb} ${count === 1 ? '1 run' : `${count} runs`}${skipped}?`
    },
    async act(context, _args, { rows, more }): Promise<BulkAnswer> {
      const done: BulkRun[] = []
      for (const run of rows) {
        done.push(run.result === 'would_change' ? await actOn(how, context, run) : run)
        context.progress(done.length / rows.length)
      }
      return { rows: done, more }
    },
  })
}

type Summary = Omit<RunView, 'steps'>

async function pick(how: How, context: Context, args: Values<typeof picked>): Promise<BulkAnswer> {
  const { runs, more } = args.runIds.length > 0 ? await named(context, args) : await matching(context, args)
  const rows = runs.map((run) => previewOf(how, run))
  if (rows.length === 0) throw notFound('No run matches.')
  return { rows, more }
}

interface Picked {
  readonly runs: readonly Summary[]
  readonly more: boolean
}

async function named(context: Context, { runIds, limit: _limit, ...filters }: Values<typeof picked>): Promise<Picked> {
  if (Object.values(filters).some((filter) => filter !== undefined)) {
    throw badArgument('runIds', 'and filters exclude each other: name the runs, or say which')
  }
  const operator = runsOf(context)
  return { runs: await Promise.all([...new Set(runIds)].map((runId) => operator.get(runId))), more: false }
}

async function matching(context: Context, args: Values<typeof picked>): Promise<Picked> {
  const { runIds: _ids, limit, ...filters } = args
  if (Object.values(filters).every((filter) => filter === undefined)) {
    throw badArgument(
      'runIds',
      'is missing. Name runs, or say which: --state, --definition, --queue, --parent, --attributes, --scope, --since or --before',
    )
  }
  const { runs, cursor } = await runsOf(context).list({ limit, ...(await filtersOf(context, filters)) })
  return { runs, more: cursor !== null }
}

function previewOf(how: How, run: Summary): BulkRun {
  const { runId, definition, state, startedAt, failure } = run
  const note = ways[how].skips(run)
  const result = note === null ? 'would_change' : 'skipped'
  return { runId, definition, state, startedAt, failure: failure?.message ?? null, result, note }
}

async function actOn(how: How, { admin, actor }: Context, run: BulkRun): Promise<BulkRun> {
  const { runId } = run
  const operator = runsOf({ admin })
  try {
    await admin.act(actor, `run.${how}`, { runId }, async () => void (await operator[how](runId)))
    return { ...run, result: 'changed' }
  } catch (error) {
    // What the state of one run does not allow does not stop the others; a store that is away does.
    if (!isOnceError(error) || error.retryable) throw error
    return { ...run, result: 'refused', note: error.message }
  }
}
