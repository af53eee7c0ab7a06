import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Subject } from 'onceonly/testing'
import { conformanceCases, runCase } from 'onceonly/testing'
import { assemble } from '../../../src/ledger/stores/memory/assemble.ts'
import type { Machine } from '../../../src/ledger/stores/memory/tables.ts'
import { createWatchers } from '../../../src/ledger/stores/memory/watch.ts'
import { mutants } from '../ledger/transition/mutants.ts'

/** Every rule that a store can leave out is missed by the kit: the same broken machines that the explorer finds. */
for (const [name, machine] of Object.entries(mutants)) {
  test(`the kit notices a store in which ${name}`, async () => {
    const open = async (): Promise<Subject> => {
      const store = assemble({ testClock: true }, { machine: machine as Machine, watchers: createWatchers() })
      return { store, close: () => store.stop() }
    }
    const failed: string[] = []
    for (const each of conformanceCases()) {
      await runCase(each, open).catch(() => failed.push(each.name))
      if (failed.length > 0) return
    }
    assert.fail('every case passed')
  })
}
