import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { root } from '../command.ts'
import { FILE_BOUND_MS } from './limits.ts'
import { noResults, type Results, report, type Timed } from './results.ts'

/**
 * Runs unit tests of several files in one process: most of what a file costs is the start of a process and its modules.
 */
export async function runUnits(files: readonly string[], interrupted: AbortSignal): Promise<Results & Timed> {
  const startedMs = performance.now()
  const child = fork(join(import.meta.dirname, 'units-process.ts'), [...files], {
    cwd: root,
    execArgv: ['--conditions=onceonly-source', '--expose-gc'],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    signal: AbortSignal.any([interrupted, AbortSignal.timeout(FILE_BOUND_MS)]),
    killSignal: 'SIGKILL',
  })
  let results = noResults()
  const printed: string[] = []
  child.on('message', (message) => {
    results = message as Results
  })
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => printed.push(chunk.toString()))
  // The exit code reports a killed process as well.
  child.on('error', () => {})
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0 && results.failed === 0) {
    results.failed += 1
    results.failures.push(`the process of these files ended with ${code ?? 'a signal'}: ${files.join(', ')}`)
  }
  results.printed.push(...printed)
  return { ...results, ...report(`unit tests of ${files.length} files`, results, startedMs) }
}
