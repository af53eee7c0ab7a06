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

/**
 * Examples, and programs whose packages have a lock file of their own, are compiled and run by tests; a page that quotes them
 * cannot be wrong.
 */
for (const page of pages) {
  const blocks = [...read(page).matchAll(/^ *```ts\n(.*?)^ *```$/gms)].map(([, code]) => flat(code ?? ''))
  if (blocks.length === 0) continue
  test(`the code of ${page} is in an example`, () => {
    const strays = blocks.filter((block) => !examples.some((example) => example.includes(block)))
    assert.deepEqual(strays, [])
  })
}

test('a guide leads to the programs that it quotes', () => {
  const programs = globSync('examples/*.ts', { cwd: root }).map((path) => ({ path, code: flat(read(path)) }))
  const missing = globSync('docs/guides/*.md', { cwd: root }).flatMap((page) => {
    const text = read(page)
    const quoted = [...text.matchAll(/^ *```ts\n(.*?)^ *```$/gms)].flatMap(([, code = '']) => {
      const sources = programs.filter((program) => program.code.includes(flat(code)))
      // What several programs have, and their imports, are quoted from none of them.
      return sources.length === 1 && !code.startsWith('import ') ? sources.map(({ path }) => path) : []
    })
    return [...new Set(quoted)].filter((path) => !text.includes(`../../${path}`)).map((path) => `${page}: ${path}`)
  })
  assert.deepEqual(missing, [])
})

test('configuration that a page shows is the file that the laboratory uses, and every such file is shown', () => {
  const quotes = pages.flatMap((page) =>
    [...read(page).matchAll(/^`(ops\/[\w./-]+)`:\n\n```\w+\n(.*?)^```$/gms)].map(([, file = '', text]) => ({
      file,
      text,
    })),
  )
  for (const { file, text } of quotes) assert.equal(text, read(file), file)
  const shown = new Set(quotes.map(({ file }) => file))
  assert.deepEqual(
    globSync('ops/clusters/*', { cwd: root }).filter((file) => !shown.has(file)),
    [],
  )
})

test('the documentation quotes examples', () => assert.ok(pages.length > 10))

test('no printed code needs a cast, a `!` or a declaration of another module', () => {
  const blocks = [...pages, 'README.md'].flatMap((page) =>
    [...read(page).matchAll(/^ *```(?:ts|js)\n(.*?)^ *```$/gms)].map(([, code = '']) => ({ page, code })),
  )
  assert.ok(blocks.length > 30, `${blocks.length} blocks`)
  const forbidden = /\bas (?!const\b)[A-Za-z{(]|[\w)\]]!(?=[.,;)\]]|$)|declare module|@ts-/m
  const found = blocks
    .map(({ page, code }) => ({
      page,
      cast: forbidden.exec(code.replaceAll(/'[^'\n]*'|`[^`]*`|\/\/.*$|^import .*$/gm, ''))?.[0],
    }))
    .filter(({ cast }) => cast !== undefined)
  assert.deepEqual(found, [])
})
