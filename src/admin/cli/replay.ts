import { isOnceError } from '../../ledger/core/errors.ts'
import { jsonText } from '../../ledger/core/json-text.ts'
import { limits } from '../../ledger/core/limits.ts'
import { createHolding } from '../../runs/holding.ts'
import { createRunOperator } from '../../runs/operate.ts'
import { endedLongAgo } from '../../runs/problems.ts'
import type { Replay } from '../../runs/replay.ts'
import { isKept } from '../../runs/replay.ts'
import type { Since } from '../commands/argument.ts'
import { configFile, loadConfig, runsOf } from './config.ts'
import type { ReplayValues } from './program-arguments.ts'
import { createProgress } from './progress.ts'
import { count, createTally, shown, statusOf, summary } from './replay-text.ts'
import { startReplayer } from './replayer.ts'
import { Usage } from './usage.ts'

/** Runs that one command replays: more is a job for several commands. */
const MOST_RUNS = 100_000

export async function replayProgram(values: ReplayValues): Promise<number> {
  if (!values.all && values.runs.length === 0) throw new Usage('Name a run, or say --all.')
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
    const now = await store.clock.now({ timeoutMs: limits.storeCallMs })
    const ids = values.all ? await everyRun(operator, definitions, startOf(values.since, now)) : values.runs
    const { journal } = createHolding(store)
    await using replayer = startReplayer(file)
    const progress = createProgress('replayed', ids.length)
    const tally = createTally()
    for (const id of ids) {
      const replay = await oneReplay(id, async () => {
        const run = await operator.row(id)
        if (!isKept(run, now)) throw endedLongAgo(id)
        const { entries } = await journal(id)
        return replayer.replay({ run, entries, ignore: values.ignore })
      })
      if (ids.length > 1) progress.step()
      if ('verdict' in replay) count(tally, replay)
      else if (replay.isGone && values.all) tally.gone += 1
      else tally.failed += 1
      report(replay, values, ids.length === 1)
    }
    progress.end()
    if (!values.json) console.log(summary(tally, replayer.isolated))
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

function report(replay: Replay | NotReplayed, { all, json }: ReplayValues, isOnly: boolean): void {
  if ('verdict' in replay) {
    if (json) console.log(jsonText(replay))
    else if (isOnly || replay.verdict === 'diverged') console.log(shown(replay))
    return
  }
  const { runId, error, isGone } = replay
  if (isGone && all) return
  if (json) console.log(JSON.stringify({ runId, error }))
  console.error(`onceonly: ${runId} could not be replayed: ${error}`)
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

/** All runs where no time was given. */
function startOf(since: Since | undefined, now: number): number {
  if (since === undefined) return 0
  return 'at' in since ? since.at : now - since.agoMs
}
