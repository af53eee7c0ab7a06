import { closeSync, openSync } from 'node:fs'

/** Outcomes hold what people sent and were answered. */
const OWNER_ONLY = 0o600

/**
 * Makes a database that is not there yet, for its owner alone. SQLite would make it readable for all users, and gives its
 * log the mode of the database. One that is there stays as it is: its owner may share it.
 */
export function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'ax', OWNER_ONLY))
  } catch {
    // It is there, or cannot be made: SQLite says which, in words that are known.
  }
}
