import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { REMOVAL_VARIABLE, type Removal, type Test } from './row.ts'

export interface Tried {
  readonly passed: number
  readonly failed: number
  /** It reached its time limit: on a busy machine that may have other reasons. */
  readonly hung: boolean
  /** The file ended without running its test: that says nothing about the rule. */
  readonly broke: boolean
  readonly output: string
}

/** A test that hangs without its rule is ended, and has noticed. */
const TEST_MS = 80_000
/** A file whose test is over and that does not end by itself: what the test waited for may be open still. */
const FILE_MS = TEST_MS + 15_000
const root = join(import.meta.dirname, '../..')
const preload = join(import.meta.dirname, 'remove.ts')

/** Runs one test by its name in a process of its own, with a rule taken out or, with `null`, with all of them. */
export function tryTest({ file, name }: Test, removal: Removal | null): Promise<Tried> {
  return new Promise((resolve, reject) => {
    const args = [
      '--conditions=onceonly-source',
      '--test',
      '--test-force-exit',
      '--test-reporter=tap',
      `--test-timeout=${TEST_MS}`,
    ]
    const child = spawn(process.execPath, [...args, `--test-name-pattern=/${escaped(name)}/`, file], {
      cwd: root,
      env: {
        ...process.env,
        NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import=${preload}`,
        [REMOVAL_VARIABLE]: JSON.stringify(removal),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // In a group of its own, so that the servers that it started end with it.
      detached: true,
    })
    let output = ''
    let hung = false
    const limit = setTimeout(() => {
      hung = true
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }, FILE_MS)
    child.stdout.on('data', (chunk) => (output += String(chunk)))
    child.stderr.on('data', (chunk) => (output += String(chunk)))
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(limit)
      resolve({
        passed: countOf(output, 'pass'),
        failed: countOf(output, 'fail') + countOf(output, 'cancelled') + (hung ? 1 : 0),
        hung: hung || /test timed out|did not finish before its parent/.test(output),
        broke: !hung && (/^not ok \d+ - .*\.test\.ts$/m.test(output) || output.includes("failureType: 'hookFailed'")),
        output,
      })
    })
  })
}

function escaped(text: string): string {
  return text.replaceAll(/[\\/^$.*+?()[\]{}|]/g, '\\$&')
}

function countOf(output: string, what: string): number {
  return Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
}
