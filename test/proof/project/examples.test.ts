import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const folder = join(import.meta.dirname, '../../../examples')
const LONGEST_MS = 240_000

/** Examples are documentation that runs: each asserts what it shows, and ends by itself. */
for (const name of readdirSync(folder).filter((each) => each.endsWith('.ts'))) {
  test(`examples/${name} runs`, async () => {
    const { stdout } = await run(process.execPath, ['--conditions=onceonly-source', join(folder, name)], {
      timeout: LONGEST_MS,
    })
    assert.notEqual(stdout.trim(), '', 'an example says what it did')
  })
}
