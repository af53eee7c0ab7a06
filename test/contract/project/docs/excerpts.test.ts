import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Lines without their common indentation, as one text that can be searched for. */
const flat = (code: string) =>
  code
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .trim()

/** Those with packages of their own are compiled and run in the slow tier. */
const sources = ['examples/*.{ts,json}', 'test/proof/*/app/**/*.ts']
const examples = globSync(sources, { cwd: root, exclude: ['**/node_modules'] }).map((path) => flat(read(path)))
const pages = globSync('docs/**/*.md', { cwd: root })

/** Examples are compiled by the checks and run by a test of their own; a page that quotes them cannot be wrong. */
for (const page of pages) {
  const blocks = [...read(page).matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => flat(code ?? ''))
  if (blocks.length === 0) continue
  test(`the code of ${page} is in an example`, () => {
    const strays = blocks.filter((block) => !examples.some((example) => example.includes(block)))
    assert.deepEqual(strays, [])
  })
}

test('the documentation quotes examples', () => assert.ok(pages.length > 10))
