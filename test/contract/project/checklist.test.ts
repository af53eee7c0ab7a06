import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { PAGE, pageOf } from '../../../lab/checklist/page.ts'
import { rows } from '../../../lab/checklist/rows.ts'

const root = join(import.meta.dirname, '../../..')
const removals = rows.flatMap((row) => row.removals)
const sourceOf = (file: string) => readFileSync(join(root, file), 'utf8')

test('every rule of the checklist is in the code once, and its tests exist', () => {
  const lost = removals.filter(({ file, find }) => sourceOf(file).split(find).length !== 2)
  assert.deepEqual(lost, [])
  const missing = removals.flatMap(({ noticed }) => noticed).filter(({ file }) => !existsSync(join(root, file)))
  assert.deepEqual(missing, [])
})

/** Titles with parts that a loop fills in: what stands around them. */
const FILLED = /`([^`\n]*\$\{[^`\n]*)`/g
const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
/** A pattern of fewer plain characters fits every name. */
const PLAIN_CHARS = 16

test('every test that is said to notice has its name', () => {
  const files = globSync('{src,service,test,tools}/**/*.ts', { cwd: root })
  const text = files.map((file) => sourceOf(file).replaceAll("\\'", "'")).join('\n')
  const filled = Array.from(text.matchAll(FILLED), ([, title = '']) => title.split(/\$\{[^}]*\}/))
    .filter((parts) => parts.join('').length >= PLAIN_CHARS)
    .map((parts) => new RegExp(`^${parts.map(escaped).join('.+')}$`))
  const names = new Set(removals.flatMap(({ noticed }) => noticed.map(({ name }) => name)))
  const lost = [...names].filter((name) => !text.includes(name) && !filled.some((title) => title.test(name)))
  assert.deepEqual(lost, [])
})

test('a file without one of its rules is still a program: what fails then is the rule', () => {
  for (const { file, find, replace } of removals) {
    assert.doesNotThrow(() => stripTypeScriptTypes(sourceOf(file).replace(find, () => replace)), find)
  }
})

test('every line of the mission, and every short way, has its rules', () => {
  const lines = { G: 14, O: 10, S: 10, R: 16, E: 7, F: 14 }
  const ids = Object.entries(lines).flatMap(([letter, count]) =>
    Array.from({ length: count }, (_, index) => `${letter}${index + 1}`),
  )
  assert.deepEqual(
    rows.map(({ id }) => id),
    ids,
  )
})

test('the page of the checklist is the one that its rows make', () => {
  assert.equal(sourceOf(PAGE), pageOf(rows), 'npm run lab -- checklist --page')
})
