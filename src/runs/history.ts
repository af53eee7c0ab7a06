import { readFile } from 'node:fs/promises'
import { OnceError } from '../ledger/core/errors.ts'
import { checkOptions, kindOf } from '../ledger/core/option-names.ts'
import type { RunDefinition } from './definition.ts'
import type { Entry, RunRow } from './entry.ts'
import type { Replay, ReplayOptions } from './replay.ts'
import { isKnownBy, replayRun } from './replay.ts'

/** What a history says first, so that another file is refused; the number grows with its form. */
const FORMAT = 'onceonly run history 1'

type Written<T, Texts extends keyof T> = Omit<T, Texts> & { readonly [Name in Texts]: unknown }

type KeptOfRun =
  | 'id'
  | 'definition'
  | 'version'
  | 'state'
  | 'input'
  | 'inputFingerprint'
  | 'result'
  | 'failure'
  | 'startedAt'
  | 'endedAt'
  | 'restarts'
  | 'parent'
  | 'cancelledAt'
  | 'continuedAs'

/**
 * A run with everything that its replay needs, as plain JSON: keep it as a file beside your tests. It holds inputs and
 * results as they were.
 */
export interface RunHistory {
  /** The form of this file. */
  readonly format: typeof FORMAT
  /** The run, and how it ended or stands. */
  readonly run: Written<Pick<RunRow, KeptOfRun>, 'input' | 'result'>
  /** Its journal, in the order of first appearance. */
  readonly entries: readonly Written<Entry, 'plan' | 'result'>[]
}

export function historyOf(row: RunRow, entries: readonly Entry[]): RunHistory {
  const { id, definition, version, state, inputFingerprint, failure, startedAt, endedAt, restarts } = row
  const { parent, cancelledAt, continuedAs } = row
  const known = { id, definition, version, state, inputFingerprint, failure, startedAt, endedAt, restarts }
  const run = { ...known, parent, cancelledAt, continuedAs }
  return {
    format: FORMAT,
    run: { ...run, input: jsonOf(row.input), result: jsonOf(row.result) },
    entries: entries.map((entry) => ({ ...entry, plan: jsonOf(entry.plan), result: jsonOf(entry.result) })),
  }
}

/** An exported run: the path or address of its JSON file, or the JSON itself. */
export type FixtureSource =
  | string
  | URL
  | { readonly format: string; readonly run: object; readonly entries: readonly object[] }

/**
 * Replays an exported run with the code of today, without a database: nothing is performed. For a test of your own that
 * fails when a change of a definition would change the runs that are under way.
 *
 * @param fixture what `engine.export` returned, or the JSON file in which it was kept
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { defineRun, replayFixture } from 'onceonly/run'
 *
 * const welcome = defineRun('welcome', async (run, name: string) => run.step('greet', () => `Hello ${name}`))
 *
 * export async function mustStillReplay(file: string) {
 *   const { verdict, steps } = await replayFixture(welcome, file)
 *   assert.equal(verdict, 'identical', JSON.stringify(steps, null, 2))
 * }
 * ```
 */
export async function replayFixture<I, O>(
  definition: RunDefinition<I, O>,
  fixture: FixtureSource,
  options: Omit<ReplayOptions, 'dryRun'> = {},
): Promise<Replay> {
  checkOptions('replayFixture', options, { ignore: true, timeoutMs: true })
  const { run, entries } = checked(await sourceOf(fixture))
  const row: RunRow = { ...unheld, ...run, input: textOf(run.input) ?? 'null', result: textOf(run.result) }
  const known = definition as RunDefinition<unknown, unknown>
  if (run.definition !== known.name || !isKnownBy(known, row)) {
    throw new OnceError(
      'bad_option',
      `The fixture of ${run.id} is of ${run.definition}, version ${run.version}; this is ${known.name}, version ${known.version}.`,
      { next: 'Give the definition that the run was started with, as it is today.' },
    )
  }
  const read = entries.map((entry) => ({ ...entry, plan: textOf(entry.plan), result: textOf(entry.result) }))
  return await replayRun(row, read, known, options)
}

async function sourceOf(fixture: FixtureSource): Promise<unknown> {
  if (typeof fixture !== 'string' && !(fixture instanceof URL)) return fixture
  try {
    return JSON.parse(await readFile(fixture, 'utf8')) as unknown
  } catch (cause) {
    throw new OnceError('bad_option', `The fixture ${String(fixture)} cannot be read as JSON.`, { cause, next: GIVE })
  }
}

/** What only a worker needs to know of a run. */
const unheld = {
  worker: null,
  fence: 0,
  dueAt: null,
  takenAt: null,
  takenBefore: null,
  takeovers: 0,
  timeoutMs: null,
  deadlineAt: null,
  queue: null,
  parent: null,
  ifParentEnds: null,
  cancelledAt: null,
  timedOut: false,
  forkedFrom: null,
  continues: null,
  continuedAs: null,
}

/** The recorded text is JSON, with marks where JSON has no word for a value: as it stands, a person can read it. */
function jsonOf(text: string | null): unknown {
  return text === null ? null : { recorded: JSON.parse(text) as unknown }
}

function textOf(written: unknown): string | null {
  return written === null ? null : JSON.stringify((written as { readonly recorded: unknown }).recorded)
}

const GIVE = 'Give what `engine.export` returned, or the JSON file in which it was kept.'

function checked(given: unknown): RunHistory {
  const is = (text: string) => new OnceError('bad_option', `This is no fixture of a run: ${text}.`, { next: GIVE })
  if (typeof given !== 'object' || given === null) throw is(`it is ${kindOf(given)}`)
  const { format, run, entries } = given as {
    readonly format?: unknown
    readonly run?: unknown
    readonly entries?: unknown
  }
  if (format !== FORMAT) throw is(`its format is ${JSON.stringify(format)}, not ${JSON.stringify(FORMAT)}`)
  if (typeof run !== 'object' || run === null) throw is('it has no `run`')
  if (!Array.isArray(entries)) throw is('it has no `entries`')
  return given as RunHistory
}
