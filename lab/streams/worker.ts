import type { Form } from './form.ts'
import { runSeed } from './form.ts'

/** One process of several: runs the seeds that it is handed, one after the other, and reports failed ones in full. */
const form = JSON.parse(process.argv[2] ?? '') as Form

// Errors are part of the game here: where each of them was made is not worth the time.
Error.stackTraceLimit = 0

process.on('message', (seed: number) => {
  void runSeed(seed, form).then((result) => process.send?.(result.failure === null ? { ...result, lines: [] } : result))
})
