import { replayRun } from '../run/replay.ts'
import { loadConfig, runsOf } from './config.ts'
import type { ReplayAnswer, ReplayTask } from './replayer.ts'

/** Evaluates the runs that it is sent, one after the other. Only what it is sent: it knows no store. */
const [, , file = ''] = process.argv
const definitions = loadConfig(file).then((config) => runsOf(config, file))

async function answer({ run, entries, ignore }: ReplayTask): Promise<ReplayAnswer> {
  const definition = (await definitions).get(run.definition)
  if (definition === undefined)
    return { error: `The run ${run.id} is a ${run.definition}, which ${file} does not export.` }
  return { replay: await replayRun(run, entries, definition, { ignore }) }
}

process.on('message', (task) => {
  void answer(task as ReplayTask)
    .catch((error: unknown): ReplayAnswer => ({ error: error instanceof Error ? error.message : String(error) }))
    .then((told) => process.send?.(told))
})
