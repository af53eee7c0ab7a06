import { chmod } from 'node:fs/promises'
import type { DatabaseSync } from 'node:sqlite'
import { StreamError } from './errors.ts'

/** Keeps other processes, and other storages of this one, off a file. */
export interface FileLock {
  release(): void
}

/** For a commit of four bytes, or a look at them, by another opener. Nothing else runs meanwhile, so it is short. */
const BUSY_MS = 250
/** SQLite's code for "another process has the lock". */
const SQLITE_BUSY = 5

/**
 * Takes the lock of a file, or throws `storage_taken` with the process that has it. Node has no locks of files, and a file
 * that names a process outlives a kill and lies once the number is given to another one. SQLite takes a lock of the
 * kernel, which ends with the process, however that ends; of several openers exactly one gets it.
 */
export async function lockFile(path: string): Promise<FileLock> {
  const sqlite = await import('node:sqlite')
  const database = new sqlite.DatabaseSync(`${path}.lock`)
  try {
    // By its path: to open and close it would drop what another storage of this process has locked.
    await chmod(`${path}.lock`, 0o600)
    database.exec('pragma busy_timeout = 0; begin immediate')
    database.exec(`pragma busy_timeout = ${BUSY_MS}; pragma user_version = ${process.pid}; commit; begin immediate`)
    return { release: () => database.close() }
  } catch (error) {
    const taken = isBusy(error) ? storageTaken(path, holderOf(database)) : error
    database.close()
    throw taken
  }
}

/** Readable while the lock is held; null when it is being written just now. */
function holderOf(database: DatabaseSync): number | null {
  try {
    database.exec(`pragma busy_timeout = ${BUSY_MS}`)
    return Number(database.prepare('pragma user_version').get()?.['user_version'])
  } catch {
    return null
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

function storageTaken(path: string, pid: number | null): StreamError {
  const holder = pid === null ? 'another process' : `process ${pid}`
  return new StreamError('storage_taken', `The file ${path} is used by ${holder}.`, { details: { path, pid } })
}
