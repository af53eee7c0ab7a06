import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conformanceCases, runCase } from 'onceonly/testing'
import { brokenStores } from '../../support/stores/broken.ts'

/** The kit tests itself: every store that is wrong on purpose must fail at least one case, which is printed. */
for (const { name, open } of brokenStores) {
  test(`the kit notices: ${name}`, async (t) => {
    const failed: string[] = []
    for (const each of conformanceCases()) {
      try {
        await runCase(each, open)
      } catch {
        failed.push(each.name)
      }
    }
    assert.ok(failed.length > 0, 'every case passed')
    t.diagnostic(`${failed.length} cases fail, the first is: ${failed[0]}`)
  })
}
