import { chmodSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/** Where Linux keeps files in memory. */
const MEMORY = '/dev/shm'
const TMPFS_MAGIC = 0x01021994
/** All servers and databases of a run together take a third of it. */
const ROOM_BYTES = 4 * 1_024 ** 3
const PREFIX = 'onceonly-tests-'

/**
 * Runs the work with its temporary files in memory, where there is room for them: hundreds of databases are made and
 * thrown away, and a third of the time went into putting them on a disk. A TMPDIR that is set is used as it is.
 */
export async function withScratch<T>(work: () => Promise<T>): Promise<T> {
  if (process.env['TMPDIR'] !== undefined || !hasRoom()) return work()
  removeAbandoned()
  const folder = join(MEMORY, PREFIX + process.pid)
  mkdirSync(folder, { recursive: true })
  // As open as /tmp: servers that root starts under other accounts have their folders in it.
  chmodSync(folder, 0o1777)
  process.env['TMPDIR'] = folder
  try {
    return await work()
  } finally {
    delete process.env['TMPDIR']
    rmSync(folder, { recursive: true, force: true })
  }
}

function hasRoom(): boolean {
  try {
    const { type, bavail, bsize } = statfsSync(MEMORY)
    return type === TMPFS_MAGIC && bavail * bsize >= ROOM_BYTES
  } catch {
    return false
  }
}

/** A run that was killed could not clean up, and what it left would take memory until the machine restarts. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY)) {
    if (name.startsWith(PREFIX) && !isRunning(Number(name.slice(PREFIX.length)))) {
      rmSync(join(MEMORY, name), { recursive: true, force: true })
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
