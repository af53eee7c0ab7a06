import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'
import { seconds } from '../command.ts'

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** How long one process of tests took. */
export interface Timed {
  readonly what: string
  readonly tookMs: number
}

/** The results of some tests, with details of failures only. */
export interface Results extends Counts {
  readonly failures: string[]
  readonly printed: string[]
}

export function noResults(): Results {
  return { passed: 0, failed: 0, skipped: 0, failures: [], printed: [] }
}

/** Adds one event of the runner; `path` is the file as the runner names it. */
export function addEvent(results: Results, event: TestEvent, path: string, shown: string): void {
  if (event.type === 'test:stdout' || event.type === 'test:stderr') results.printed.push(event.data.message)
  // What a test left behind and what then went wrong comes as a diagnosis, not as a failure of a test.
  if (event.type === 'test:diagnostic' && event.data.file !== undefined) results.printed.push(`${event.data.message}\n`)
  if (event.type !== 'test:pass' && event.type !== 'test:fail') return
  const { name, line, skip, todo, details } = event.data
  if (details.type === 'suite') return
  // The runner reports the file itself as one more test, but only when something is wrong with the file as a whole.
  const whole = name === path
  if (event.type === 'test:pass' && whole) {
    results.failed += 1
    results.failures.push(`${shown}: the file holds no test`)
  } else if (skip !== undefined || todo !== undefined) results.skipped += 1
  else if (event.type === 'test:pass') results.passed += 1
  else {
    results.failed += 1
    const { error } = event.data.details
    results.failures.push(
      whole ? `${shown}: ${wholeFile(error)}` : `${name} (${shown}:${line ?? 1})\n${explain(error)}`,
    )
  }
}

function wholeFile(error: Error & { failureType?: string }): string {
  return error.failureType === 'testAborted' ? 'it was ended before it was done' : 'its process failed'
}

/** The runner wraps what a test threw; the cause is what its author wants to read. */
function explain(error: Error): string {
  return inspect(error.cause ?? error, { depth: 6 })
}

/** One line, and below it what went wrong. */
export function report(what: string, results: Results, startedMs: number): Timed {
  const { passed, failed, skipped, failures, printed } = results
  const counts = [`${passed} passed`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`]
  console.log(
    `${failed === 0 ? 'ok    ' : 'FAILED'} ${what}: ${counts.filter(Boolean).join(', ')} in ${seconds(startedMs)}`,
  )
  if (failed > 0) console.log([...failures, printed.join('')].join('\n').replaceAll(/^(?=.)/gm, '       '))
  return { what, tookMs: performance.now() - startedMs }
}
