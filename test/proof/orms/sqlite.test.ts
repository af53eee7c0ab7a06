import { test } from 'node:test'
import type { SqliteDriver } from 'onceonly/sqlite'
import { storeConformance } from 'onceonly/testing'
import { sqliteSubject } from '../../contract/stores/subjects.ts'
import { fileCases } from './file.ts'
import { installOrms } from './install.ts'
import { cases } from './kit.ts'
import { allRows } from './rows.ts'
import { sharedCases } from './shared.ts'
import { wingCases } from './wings.ts'

/** The cases of the servers that make sense on a file, on every ORM that has transactions of its own there. */

const missing = await installOrms()
const rows = missing === false ? await allRows('file') : []

/** A file has no sessions, settings, schemas or roles, and a statement that fails there leaves the transaction usable. */
const serverOnly = new Set([
  'a failure that is hidden before COMMIT is no success',
  'step: a failure that is hidden before COMMIT is no result',
  'step: its result is recorded where its transaction began',
  'an effect that hides a failed statement commits nothing',
  'a session that is ended under its effect is tried again',
  'within: the settings of your transaction stay as they were',
  'tables in a schema of their own are found, and your path stays',
  'an ORM on another database is refused',
  // Only those of this process are known; one of another process is waited for, as any writer is.
  'a twin is refused at once where it shall not wait',
  'an effect may move to the schema and the role of a tenant',
  'within: not seeing the tables is refused with what to do',
  'within: a read-only transaction is refused with what to do',
])

const KILLED = 'a process that is killed between the statements leaves nothing'

for (const row of rows) {
  for (const [name, each] of Object.entries({ ...cases, ...sharedCases, ...wingCases })) {
    // Once for each driver: most of its time is that of two processes.
    if (name === KILLED && !row.name.startsWith('Kysely')) continue
    if (!serverOnly.has(name)) test(`${row.name}: ${name}`, (t) => each(t, row))
  }
}

for (const [name, each] of Object.entries(fileCases)) test(name, { skip: missing }, each)

if (missing === false) {
  const { default: driver } = (await import('./app/driver.ts' as string)) as { readonly default: SqliteDriver }
  storeConformance({ test, open: () => sqliteSubject({ driver }), histories: 4 })
}
