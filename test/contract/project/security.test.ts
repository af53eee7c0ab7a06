import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../../..')
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')

test('every answer to a threat names a test, and the test is there', () => {
  const rows = textOf('SECURITY.md')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| an attacker tries to'))
  assert.ok(rows.length > 30)
  for (const row of rows) {
    const shown = [...row.matchAll(/\[[^\]]+\]\(([^)]+\.test\.ts)\) "([^"]+)"/g)]
    assert.ok(shown.length > 0, row)
    for (const [, file = '', name = ''] of shown) assert.ok(textOf(file).includes(name), `${file}: ${name}`)
  }
})
