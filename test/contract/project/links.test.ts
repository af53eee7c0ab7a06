import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../../..')

test('every relative link of the documents leads to a file', () => {
  const documents = globSync(['*.md', '{src,service,console,docs,examples,bench,lab}/**/*.md'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  })
  assert.ok(documents.length > 10, 'the documents were found')
  const broken = documents.flatMap((document) => {
    const text = readFileSync(join(root, document), 'utf8').replaceAll(/```.*?```/gs, '')
    return [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target) && !target.startsWith('/'))
      .filter((target) => !existsSync(join(root, dirname(document), target)))
      .map((target) => `${document}: ${target}`)
  })
  assert.deepEqual(broken, [])
})
