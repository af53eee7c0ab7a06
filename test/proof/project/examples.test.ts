import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { createDatabase } from '../../../tools/servers/database.ts'

const run = promisify(execFile)
const folder = join(import.meta.dirname, '../../../examples')
const LONGEST_MS = 240_000

const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (postgres === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')

/** Examples are documentation that runs: each asserts what it shows, and ends by itself. */
for (const name of readdirSync(folder).filter((each) => each.endsWith('.ts'))) {
  const needsDatabase = readFileSync(join(folder, name), 'utf8').includes("process.env['DATABASE_URL']")
  const skip = needsDatabase && postgres === undefined ? 'no PostgreSQL server' : false
  test(`examples/${name} runs`, { skip }, async (t) => {
    const database = needsDatabase && postgres !== undefined ? await createDatabase(postgres) : null
    t.after(() => database?.drop())
    const { stdout } = await run(process.execPath, ['--conditions=onceonly-source', join(folder, name)], {
      timeout: LONGEST_MS,
      env: { ...process.env, ...(database === null ? {} : { DATABASE_URL: database.url }) },
    })
    assert.notEqual(stdout.trim(), '', 'an example says what it did')
  })
}
