import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { root } from '../../tools/command.ts'
import { median } from './statistics.ts'

const GIB = 1_024 ** 3
/** Of a file system that lives in memory, where making something durable costs nothing. */
const TMPFS_TYPE = 0x0102_1994
const SYNCS = 50
const PAGE = Buffer.alloc(4_096, 1)

/** Everything about the machine that a reader needs to judge a figure. */
export function describeMachine(): string[] {
  const memory = `${Math.round(totalmem() / GIB)} GiB`
  return [
    `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), ${memory}, Linux ${release()}`,
    `Node ${process.versions.node}, SQLite ${process.versions['sqlite'] ?? '?'}, onceonly at ${commit()}`,
    loads(),
  ]
}

export function loads(): string {
  const [one = 0, five = 0] = loadavg()
  return `load average ${one.toFixed(2)} (1 min), ${five.toFixed(2)} (5 min)`
}

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', 'src') === '' ? '' : ' with changes')
  } catch {
    return 'an unknown commit'
  }
}

/** What a durable write costs here: all group commit is about sharing this. */
export function describeDisk(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-bench-'))
  try {
    const file = openSync(join(folder, 'sync'), 'w')
    const took = Array.from({ length: SYNCS }, () => {
      const startedMs = performance.now()
      writeSync(file, PAGE)
      fdatasyncSync(file)
      return performance.now() - startedMs
    })
    closeSync(file)
    const inMemory = statfsSync(folder).type === TMPFS_TYPE ? ', IN MEMORY: not a result, set TMPDIR to a disk' : ''
    return `fdatasync of 4 KiB takes ${median(took).toFixed(2)} ms (median of ${SYNCS})${inMemory}`
  } finally {
    rmSync(folder, { recursive: true })
  }
}
