import { join } from 'node:path'
import { run } from 'node:test'
import { root } from '../command.ts'
import { FILE_BOUND_MS, TEST_BOUND_MS } from './limits.ts'
import { addEvent, noResults, type Results, report, type Timed } from './results.ts'

/** Runs one file in a process of its own. */
export async function runFile(file: string, interrupted: AbortSignal): Promise<Results & Timed> {
  const path = join(root, file)
  const results = noResults()
  const startedMs = performance.now()
  const stream = run({
    files: [path],
    cwd: root,
    execArgv: ['--conditions=onceonly-source'],
    timeout: TEST_BOUND_MS,
    signal: AbortSignal.any([interrupted, AbortSignal.timeout(FILE_BOUND_MS)]),
  })
  for await (const event of stream) addEvent(results, event, path, file)
  return { ...results, ...report(file, results, startedMs) }
}
