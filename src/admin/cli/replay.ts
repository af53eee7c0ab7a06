import { parseArgs } from 'node:util'
import { isOnceError, OnceError } from '../../ledger/core/errors.ts'
import { DAY, HOUR, limits, MINUTE, SECOND } from '../../ledger/core/limits.ts'
import { createHolding } from '../../runs/holding.ts'
import { createRunOperator } from '../../runs/operate.ts'
import type { Replay } from '../../runs/replay.ts'
import { isKept } from '../../runs/replay.ts'
import { configFile, loadConfig, runsOf } from './config.ts'
import { createProgress } from './progress.ts'
import { count, createTally, shown, statusOf, summary } from './replay-text.ts'
import { startReplayer } from './replayer.ts'
import { Usage } from './usage.ts'

const HELP = `onceonly replay RUN_ID… | --all [--since 7d] [--config FILE] [--ignore 'STEP: PATH'] [--json]

Evaluates recorded runs with the code of today and shows what would be done otherwise. Nothing is performed: the code runs
in a process of its own, without your environment, and without a network where the system allows it.

  --all          every run of a definition in the configuration
  --since 7d     only runs that were started since then: a number and s, m, h or d
  --config FILE  a module that exports \`runs\` and \`store\`; onceonly.config.ts, when left out
  --ignore …     a place that may differ: \`welcome: $.sentAt\`, \`*: $.headers.**\`; may be repeated
  --json         one line of JSON for each run, instead of a text

A run that cannot be replayed is told and counted, and the others go on. With --all, runs that ended too long ago or were
swept meanwhile are only counted.

Exit status: 0 when all are identical, 1 when one diverged or could not be replayed, 2 when none could be.
`

/** Runs that one command replays: more is a job for several commands. */
const MOST_RUNS = 100_000

export async function replayCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parse(args)
  if (values.help === true) {
    process.stdout.write(HELP)
    return 0
  }
  if (values.all !== true && positionals.length === 0) throw new Usage('Name a run, or say --all.')
  const file = configFile(values.config)
  const config = await loadConfig(file)
  const definitions = runsOf(config, file)
  if (typeof config.store !== 'function') throw new Usage(`${file} exports no \`store\`.`)
  const store = await config.store()
  try {
    const operator = createRunOperator(store, () => store.clock.now({ timeoutMs: limits.storeCallMs }), {
      wake: () => {},
      drop: () => {},
    })
    const ids =
      values.all === true ? await everyRun(operator, definitions, await sinceOf(store, values.since)) : positionals
    const { journal } = createHolding(store)
    await using replayer = startReplayer(file)
    const progress = createProgress('replayed', ids.length)
    const tally = createTally()
    const now = await store.clock.now({ timeoutMs: limits.storeCallMs })
    for (const id of ids) {
      const replay = await oneReplay(id, async () => {
        const run = await operator.row(id)
        if (!isKept(run, now)) throw new OnceError('not_found', `${id} ended too long ago.`)
        const { entries } = await journal(id)
        return replayer.replay({ run, entries, ignore: values.ignore ?? [] })
      })
      if (ids.length > 1) progress.step()
      if ('verdict' in replay) count(tally, replay)
      else if (replay.isGone && values.all === true) tally.gone += 1
      else tally.failed += 1
      tell(replay, values, ids.length === 1)
    }
    progress.end()
    if (values.json !== true) console.log(summary(tally, replayer.isolated))
    return statusOf(tally)
  } finally {
    await store.stop()
  }
}

interface NotReplayed {
  readonly runId: string
  readonly error: string
  /** Nothing is kept of it: it ended long ago, or was swept meanwhile. */
  readonly isGone: boolean
}

/** What is wrong with one run says nothing about the others; what is wrong with the store does. */
async function oneReplay(runId: string, replay: () => Promise<Replay>): Promise<Replay | NotReplayed> {
  try {
    return await replay()
  } catch (error) {
    if (isOnceError(error) && error.retryable) throw error
    return {
      runId,
      error: error instanceof Error ? error.message : String(error),
      isGone: isOnceError(error, 'not_found'),
    }
  }
}

function tell(told: Replay | NotReplayed, { all, json }: { all?: boolean; json?: boolean }, isOnly: boolean): void {
  if ('verdict' in told) {
    if (json === true) console.log(JSON.stringify(told, jsonValue))
    else if (isOnly || told.verdict === 'diverged') console.log(shown(told))
    return
  }
  const { runId, error, isGone } = told
  if (isGone && all === true) return
  if (json === true) console.log(JSON.stringify({ runId, error }))
  console.error(`onceonly: ${runId} could not be replayed: ${error}`)
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        all: { type: 'boolean' },
        since: { type: 'string' },
        config: { type: 'string' },
        ignore: { type: 'string', multiple: true },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
  } catch (error) {
    throw new Usage(error instanceof Error ? error.message : String(error))
  }
}

type Operator = ReturnType<typeof createRunOperator>

async function everyRun(
  operator: Operator,
  definitions: ReadonlyMap<string, unknown>,
  since: number,
): Promise<string[]> {
  const ids: string[] = []
  for (const definition of definitions.keys()) {
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<Operator['list']>> = await operator.list({ definition, cursor })
      ids.push(...page.runs.filter(({ startedAt }) => startedAt >= since).map(({ runId }) => runId))
      const last = page.runs.at(-1)
      cursor = last !== undefined && last.startedAt < since ? null : page.cursor
      if (ids.length > MOST_RUNS) throw new Usage(`More than ${MOST_RUNS} runs: narrow them with --since.`)
    } while (cursor !== null)
  }
  return ids
}

const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY }

async function sinceOf(
  store: { clock: { now(call: { timeoutMs: number }): Promise<number> } },
  text: string | undefined,
) {
  if (text === undefined) return 0
  const [, number, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  const unitMs = UNITS[unit]
  if (number === undefined || unitMs === undefined) throw new Usage(`--since ${text} is no time like 7d or 12h.`)
  return (await store.clock.now({ timeoutMs: limits.storeCallMs })) - Number(number) * unitMs
}

/** JSON has no big integers; a text says more than a failure. */
function jsonValue(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}
