import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../../../tools/command.ts'
import { testPostgres } from '../../support/stores/postgres/store.ts'
import { app, installOrms } from './install.ts'
import { cases } from './kit.ts'
import { allRows } from './rows.ts'

/** Every case on every ORM, in one file: they are installed once. */

const missing = await installOrms()
const rows = missing === false ? await allRows() : []

test('the types of `tx` are those of the ORMs', { skip: missing }, () => {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  assert.equal(execFileSync(process.execPath, [compiler, '-p', app, '--pretty', 'false'], { encoding: 'utf8' }), '')
})

for (const row of rows) {
  for (const [name, each] of Object.entries(cases)) {
    testPostgres(`${row.name}: ${name}`, async (t) => {
      const reason = row.skips[name]
      if (reason === undefined) await each(t, row)
      else t.skip(reason)
    })
  }
}
