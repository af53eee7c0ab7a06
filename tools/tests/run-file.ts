import { join, relative } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'
import { root, seconds } from '../command.ts'

/** A test that waits for what never comes is named after this time. */
const testTimeoutMs = 2 * 60_000
/** Longer than the slowest honest file on two cores; a file that spins, or leaks what keeps it alive, ends here. */
const fileTimeoutMs = 6 * 60_000

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** Runs one file in a process of its own and prints one line, and in full only what went wrong. */
export async function runFile(file: string, interrupted: AbortSignal): Promise<Counts> {
  const path = join(root, file)
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  const failures: string[] = []
  const printed: string[] = []
  const startedMs = performance.now()
  const stream = run({
    files: [path],
    cwd: root,
    execArgv: ['--conditions=onceonly-source'],
    timeout: testTimeoutMs,
    signal: AbortSignal.any([interrupted, AbortSignal.timeout(fileTimeoutMs)]),
  })
  for await (const event of stream) {
    if (event.type === 'test:stdout' || event.type === 'test:stderr') printed.push(event.data.message)
    // What a test left behind and what then went wrong is told as a diagnosis, not as a failure of a test.
    if (event.type === 'test:diagnostic' && event.data.file !== undefined) printed.push(`${event.data.message}\n`)
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { name, line, skip, todo, details } = event.data
    if (details.type === 'suite') continue
    // The runner reports the file itself as one more test, but only when something is wrong with the file as a whole.
    const whole = name === path
    if (event.type === 'test:pass' && whole) {
      counts.failed += 1
      failures.push('the file holds no test')
    } else if (skip !== undefined || todo !== undefined) counts.skipped += 1
    else if (event.type === 'test:pass') counts.passed += 1
    else {
      counts.failed += 1
      const { error } = event.data.details
      failures.push(whole ? wholeFile(error) : `${name} (${file}:${line ?? 1})\n${explain(error)}`)
    }
  }
  const { passed, failed, skipped } = counts
  const told = [`${passed} passed`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`].filter(
    Boolean,
  )
  console.log(
    `${failed === 0 ? 'ok    ' : 'FAILED'} ${relative(root, path)}: ${told.join(', ')} in ${seconds(startedMs)}`,
  )
  if (failed > 0) console.log(indent([...failures, printed.join('')].join('\n')))
  return counts
}

function wholeFile(error: Error & { failureType?: string }): string {
  return error.failureType === 'testAborted'
    ? 'the file was ended before it was done'
    : 'the process of the file failed'
}

/** The runner wraps what a test threw; the cause is what its author wants to read. */
function explain(error: Error): string {
  return inspect(error.cause ?? error, { depth: 6 })
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '       ')
}
