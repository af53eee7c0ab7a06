import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'
import { root } from '../command.ts'

/** Longer than the slowest honest file on two cores; a file that hangs, or leaks what keeps it alive, ends here. */
const fileTimeoutMs = 5 * 60_000

interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Runs every file in a process of its own and prints one line per file, and in full only what went wrong. */
export async function runTests(files: readonly string[], signal: AbortSignal): Promise<Counts> {
  let counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  const printed = new Map<string, string[]>()
  const stream = run({
    files: files.map((file) => join(root, file)),
    cwd: root,
    concurrency: Math.max(2, availableParallelism()),
    execArgv: ['--conditions=onceonly-source'],
    timeout: fileTimeoutMs,
    signal,
  })
  for await (const event of stream) {
    if (event.type === 'test:stdout' || event.type === 'test:stderr') {
      const lines = printed.get(event.data.file) ?? []
      printed.set(event.data.file, lines)
      lines.push(event.data.message)
    } else if (event.type === 'test:fail' && event.data.details.type !== 'suite') {
      console.log(`FAILED ${event.data.name} (${place(event.data)})\n${explain(event.data.details.error)}`)
    } else if (event.type === 'test:summary' && event.data.file !== undefined) {
      const { file, counts: own, duration_ms, success } = event.data
      const tests = `${own.passed} passed${own.skipped > 0 ? `, ${own.skipped} skipped` : ''}`
      console.log(
        `${success ? 'ok    ' : 'FAILED'} ${relative(root, file)}  ${tests}  ${(duration_ms / 1000).toFixed(1)}s`,
      )
      if (!success) process.stdout.write((printed.get(file) ?? []).join(''))
      printed.delete(file)
    } else if (event.type === 'test:summary') {
      const { passed, tests, skipped, todo } = event.data.counts
      counts = { passed, failed: tests - passed - skipped - todo, skipped: skipped + todo }
    }
  }
  return counts
}

function place({ file, line }: { file?: string; line?: number }): string {
  return file === undefined ? 'no file' : `${relative(root, file)}:${line ?? 1}`
}

/** The runner wraps what a test threw; the cause is what its author wants to read. */
function explain(error: Error): string {
  return inspect(error.cause ?? error, { depth: 6 }).replaceAll(/^/gm, '    ')
}
