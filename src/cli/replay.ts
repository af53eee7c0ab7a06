import { parseArgs } from 'node:util'
import { DAY, HOUR, limits, MINUTE, SECOND } from '../core/limits.ts'
import type { RunRow } from '../run/entry.ts'
import { createHolding } from '../run/holding.ts'
import { createRunOperator } from '../run/operate.ts'
import type { Replay } from '../run/replay.ts'
import { isKept } from '../run/replay.ts'
import { configFile, loadConfig, runsOf } from './config.ts'
import { createProgress } from './progress.ts'
import { shown, summary } from './replay-text.ts'
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

Exit status: 0 when all are identical, 1 when one diverged, 2 when nothing could be replayed.
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
    const replays: Replay[] = []
    const now = await store.clock.now({ timeoutMs: limits.storeCallMs })
    for (const id of ids) {
      const run: RunRow = await operator.row(id)
      if (!isKept(run, now)) {
        if (values.all !== true) throw new Usage(`${id} ended too long ago: its results are not kept any more.`)
        progress.step()
        continue
      }
      const { entries } = await journal(id)
      const replay = await replayer.replay({ run, entries, ignore: values.ignore ?? [] })
      replays.push(replay)
      if (ids.length > 1) progress.step()
      if (values.json === true) console.log(JSON.stringify(replay, jsonValue))
      else if (ids.length === 1 || replay.verdict === 'diverged') console.log(shown(replay))
    }
    progress.end()
    if (values.json !== true) console.log(summary(replays, replayer.isolated))
    return replays.some(({ verdict }) => verdict === 'diverged') ? 1 : 0
  } finally {
    await store.stop()
  }
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
