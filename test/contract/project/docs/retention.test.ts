import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { DAY, defaults } from 'onceonly'
import { limitSettings } from '../../../../service/config-limits.ts'

const root = join(import.meta.dirname, '../../../..')
const page = await readFile(join(root, 'docs/reference/retention.md'), 'utf8')

for (const { variable, fallback } of Object.values(limitSettings)) {
  test(`the page of quotas and retention has ${variable} with its default`, () => {
    assert.match(page, new RegExp(`\`${variable}\` (?:\\| |\\()${fallback}(?: \\||\\))`))
  })
}

test('the page of quotas and retention has the defaults of records', () => {
  assert.ok(page.includes(`\`retainMs\` of the operation, ${defaults.retainMs / DAY} days by default`))
  assert.ok(page.includes(`an unknown outcome \`unknownMs\`, ${defaults.unknownMs / DAY} days`))
  assert.ok(page.includes(`everything else ${defaults.retainMs / DAY} days`))
})

test('the page of quotas and retention has every table that is made', async () => {
  const [made, dropped] = [new Set<string>(), new Set<string>()]
  for await (const file of glob('{src,service}/**/*.ts', { cwd: root })) {
    if (file.endsWith('.test.ts')) continue
    const text = await readFile(join(root, file), 'utf8')
    for (const [, name = ''] of text.matchAll(/create table (?:if not exists )?(?!if not)([a-z_]+)/gi)) made.add(name)
    for (const [, name = ''] of text.matchAll(/drop table ([a-z_]+)/gi)) dropped.add(name)
  }
  assert.ok(made.size > 40, `${made.size} tables were found`)
  assert.deepEqual([...made.difference(dropped)].filter((name) => !page.includes(`\`${name}\``)).toSorted(), [])
})
