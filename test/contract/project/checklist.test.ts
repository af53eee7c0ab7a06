import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { PAGE, pageOf } from '../../../lab/checklist/page.ts'
import { rows } from '../../../lab/checklist/rows.ts'

const root = join(import.meta.dirname, '../../..')
const removals = rows.flatMap((row) => row.removals)

test('every rule of the checklist stands in the code once, and its tests are there', () => {
  const lost = removals.filter(({ file, find }) => readFileSync(join(root, file), 'utf8').split(find).length !== 2)
  assert.deepEqual(lost, [])
  const missing = removals.flatMap(({ noticed }) => noticed).filter(({ file }) => !existsSync(join(root, file)))
  assert.deepEqual(missing, [])
})

test('the page of the checklist is the one that its rows make', () => {
  assert.equal(readFileSync(join(root, PAGE), 'utf8'), pageOf(rows), 'npm run lab -- checklist --page')
})
