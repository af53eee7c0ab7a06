import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Every function that an entry exports. */
const functions = new Set(
  globSync('api/*', { cwd: root }).flatMap((file) =>
    [...read(file).matchAll(/^(?:export )?(?:declare )?(?:async )?function (\w+)/gm)].map(([, name = '']) => name),
  ),
)

test('the reports of the entries name their functions', () => assert.ok(functions.size > 100, `${functions.size}`))

for (const page of globSync(['docs/start.md', 'docs/comparison.md', 'docs/{guides,migrating}/*.md'], { cwd: root })) {
  test(`${page} imports what its code calls`, () => {
    const code = [...read(page).matchAll(/^ *```(?:ts|js)\n(.*?)^ *```$/gms)].map(([, text]) => text).join('\n')
    const imported = new Set(
      [...code.matchAll(/import (?:type )?\{([^}]*)\} from/g)].flatMap(([, names = '']) => names.match(/\w+/g) ?? []),
    )
    const called = [...code.matchAll(/(?<![.\w])(\w+)(?:<[^()\n]*>)?\(/g)].map(([, name = '']) => name)
    // What a handler is handed may have the name of one of our functions.
    const handed = (name: string) =>
      new RegExp(`(?:const|\\{)[^()=\\n]*\\b${name}\\b[^()\\n]*\\}|function ${name}\\b`).test(code)
    const missing = called.filter((name) => functions.has(name) && !imported.has(name) && !handed(name))
    assert.deepEqual([...new Set(missing)], [])
  })
}
