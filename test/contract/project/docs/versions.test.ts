import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../../../..')

/** What the repository and the folders with a lock file of their own install, by the package and not by its alias. */
function installed(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const file of ['package.json', ...globSync('test/proof/**/package.json', { cwd: root, exclude: modules })]) {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(readFileSync(join(root, file), 'utf8')) as {
      readonly dependencies?: Readonly<Record<string, string>>
      readonly devDependencies?: Readonly<Record<string, string>>
    }
    for (const [alias, wanted] of Object.entries({ ...dependencies, ...devDependencies })) {
      const [, name = alias, version = wanted] = /^npm:(.+)@(.+)$/.exec(wanted) ?? []
      found.set(name, (found.get(name) ?? new Set()).add(version))
    }
  }
  return found
}

const modules = (path: string) => path.endsWith('node_modules')

test('the page of entries names the versions that tests run on', () => {
  const page = readFileSync(join(root, 'docs/reference/entries.md'), 'utf8')
  const section = page.slice(page.indexOf('## Versions'))
  const rows = [...section.matchAll(/^\| `([^`]+)` \| ([\d., ]+) \|$/gm)]
  assert.ok(rows.length > 15, `${rows.length} rows`)
  const versions = installed()
  for (const [, name = '', listed = ''] of rows) {
    assert.deepEqual(listed.split(', ').toSorted(), [...(versions.get(name) ?? [])].toSorted(), name)
  }
})
