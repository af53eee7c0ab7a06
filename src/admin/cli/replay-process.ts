import { isKnownBy, replayRun } from '../../runs/replay.ts'
import { loadConfig, runsOf } from './config.ts'
import type { ReplayAnswer, ReplayTask } from './replayer.ts'

/** Evaluates the runs that it is sent, one after the other. Only what it is sent: it knows no store. */
const [, , file = ''] = process.argv
const definitions = loadConfig(file).then((config) => runsOf(config, file))

async function answer({ run, entries, ignore }: ReplayTask): Promise<ReplayAnswer> {
  const definition = (await definitions).get(run.definition)
  if (!isKnownBy(definition, run)) {
    return {
      kind: 'refused',
      error: `It is a ${run.definition}, version ${run.version}, which ${file} does not export.`,
    }
  }
  return { kind: 'replayed', replay: await replayRun(run, entries, definition, { ignore }) }
}

process.on('message', (task) => {
  void answer(task as ReplayTask)
    .catch(
      (error: unknown): ReplayAnswer => ({
        kind: 'refused',
        error: error instanceof Error ? error.message : String(error),
      }),
    )
    .then((found) => process.send?.(found))
})
