import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { readme, runReadme } from '../../support/readme.ts'

const root = join(import.meta.dirname, '../../..')

test('the code of the README runs, and does what it says', async () => {
  assert.equal(await runReadme(root, ['--conditions=onceonly-source']), 'done')
})

test('the README is read in two minutes', () => {
  const words = readme.split(/\s+/).length
  assert.ok(words < 700, `${words} words`)
  const [, route = ''] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? []
  const lines = route.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('import '))
  assert.ok(lines.length <= 10, `${lines.length} lines`)
})
