import { limits, MINUTE } from '../../ledger/core/limits.ts'
import type { RunView } from '../../runs/view.ts'
import { flag, json, optional, text, whole, withDefault } from './argument.ts'
import { act, type CommandParts, type Context, given, read, type StepResolution } from './command.ts'
import { paging } from './paging.ts'
import { FOUND_FAILED, resolution } from './record-actions.ts'
import { notFound } from './refusal.ts'
import { bulkRunCommands } from './run-bulk.ts'
import { filtersOf, runFilter, runsOf } from './run-filter.ts'
import { treeOf } from './run-tree.ts'

/** A worker looks for due runs every few seconds. */
const STUCK_MS = 5 * MINUTE

const runId = text('the run')

export const runCommands = {
  runs: read({
    summary: 'runs, newest first',
    arguments: {
      ...runFilter,
      stuck: flag('only those that are long due and that no worker drives'),
      ...paging,
    },
    needs: ['runs'],
    path: '/runs',
    async read(context, { stuck, limit, cursor = null, ...filters }) {
      const page = await runsOf(context).list({ limit, cursor, ...(await filtersOf(context, filters)) })
      const late = stuck ? (await context.admin.now()) - STUCK_MS : null
      const rows = page.runs
        .filter(({ dueAt }) => late === null || (dueAt !== null && dueAt < late))
        .map(({ input: _input, result: _result, ...run }) => run)
      return { rows, cursor: page.cursor }
    },
  }),
  run: read({
    summary: 'one run with its steps',
    arguments: { runId },
    words: ['runId'],
    needs: ['runs'],
    path: '/runs/:runId',
    read: (context, args) => runsOf(context).get(args.runId),
    forViewer: withoutContents,
  }),
  'run.tree': read({
    summary: 'a run with its children, and theirs',
    arguments: { runId },
    words: ['runId'],
    needs: ['runs'],
    path: '/runs/:runId/tree',
    read: (context, args) => treeOf(runsOf(context), args.runId),
  }),
  'run.replay': read({
    summary: "what today's code makes of a run",
    arguments: { runId },
    needs: ['runs', 'replay'],
    // A replay shows inputs and results.
    role: 'operator',
    path: '/runs/:runId/replay',
    read: ({ runs }, args) => (runs as NonNullable<CommandParts['runs']>).replay(args.runId),
  }),
  'run.export': read({
    summary: 'a run as JSON, for `replayFixture` in your tests',
    arguments: { runId },
    words: ['runId'],
    needs: ['runs'],
    // It holds inputs and results.
    role: 'operator',
    path: '/runs/:runId/export',
    read: (context, args) => runsOf(context).export(args.runId),
  }),
  'run.events': read({
    summary: 'what a run emitted, in order',
    arguments: {
      runId,
      after: withDefault(whole('only behind this cursor', { least: 0, most: Number.MAX_SAFE_INTEGER }), 0),
    },
    words: ['runId'],
    needs: ['runs'],
    path: '/runs/:runId/events',
    read: (context, { runId: id, after }) => runsOf(context).events(id, { after }),
    forViewer: (page) => ({ ...page, events: page.events.map((event) => ({ ...event, value: null })) }),
  }),
  'run.fork': act({
    summary: 'start a new run from a step of an old one',
    arguments: {
      runId,
      newId: text('the id of the new run'),
      from: text('the first step that it does itself: its id, or its key'),
      tick: withDefault(whole('which execution of this step, from 0', { least: 0, most: limits.runEntries }), 0),
      input: optional(json('another input, as JSON')),
    },
    words: ['runId', 'newId'],
    needs: ['runs'],
    find: (context, args) => runsOf(context).get(args.runId),
    forViewer: withoutContents,
    target: ({ runId: id, newId, from, tick }) => ({ runId: id, newId, from, tick }),
    question: (args, run) => `Start ${args.newId} from the step ${args.from} of ${run.runId}, which is ${run.state}?`,
    async act(context, { runId: id, newId, from, tick, input }) {
      await runsOf(context).fork(id, { runId: newId, from, tick, ...given({ input }) })
      return { done: true, runId: newId }
    },
  }),
  'run.cancel': onRun('cancel', 'Cancel', 'end a run'),
  'run.resume': onRun('resume', 'Resume', 'continue a failed, cancelled or parked run, after a fix'),
  'run.retry': onRun('retry', 'Retry', 'try the steps of a run that wait for their next attempt now'),
  ...bulkRunCommands,
  'run.resolve': act({
    summary: 'end an unknown step of a run',
    arguments: {
      runId,
      key: text('the key of the step; `onceonly unknowns` shows it'),
      ...resolution,
    },
    words: ['runId', 'key'],
    needs: ['runs'],
    async find(context, args) {
      const run = await runsOf(context).get(args.runId)
      const step = run.steps.find((each) => each.key === args.key)
      if (step === undefined) throw notFound(`The run ${args.runId} has no step with the key ${args.key}.`)
      return step
    },
    forViewer: withoutPlan,
    target: ({ runId, key, to }) => ({ runId, key, to }),
    question: (args, step) =>
      `Resolve as ${args.to}: the step ${step.id}, tick ${step.tick}, of the run ${args.runId}, which is ${step.state}?`,
    async act(context, { runId, key, to, value: result = null, error = null }) {
      await resolveStep(context, runId, key, { kind: to === 'rerun' ? 'not_done' : to, result, error })
      return { done: true, runId, key }
    },
  }),
}

function onRun(how: 'cancel' | 'resume' | 'retry', verb: string, summary: string) {
  return act({
    summary,
    details: `Many runs at once: \`onceonly runs ${how}\`.`,
    arguments: { runId },
    words: ['runId'],
    needs: ['runs'],
    find: (context, args) => runsOf(context).get(args.runId),
    forViewer: withoutContents,
    target: (args) => ({ runId: args.runId }),
    question: (_args, run) => `${verb} the run ${run.runId}, which is ${run.state}?`,
    async act(context, args) {
      // A cancel answers whether it ended the run.
      const done = (await runsOf(context)[how](args.runId)) !== false
      return { done, runId: args.runId }
    },
  })
}

function withoutPlan(step: RunView['steps'][number]) {
  return { ...step, result: null, plan: null }
}

function withoutContents(run: RunView) {
  return { ...run, input: null, result: null, steps: run.steps.map(withoutPlan) }
}

async function resolveStep(context: Context, runId: string, key: string, found: StepResolution): Promise<unknown> {
  if (context.runs !== undefined) return await context.runs.resolve(runId, key, found)
  const { kind, result, error } = found
  const resolved = kind === 'failed' ? { kind, error: new Error(error ?? FOUND_FAILED) } : { kind, result }
  return await runsOf(context).resolve(runId, key, resolved)
}
