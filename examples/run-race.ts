import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))

const purchase = defineRun('purchase', async (run, input: { item: string; patienceMs: number }) => {
  const { winner } = await run.race('decision', {
    approved: (branch) => branch.waitFor('approved'),
    tooLate: (branch) => branch.sleep('patience', input.patienceMs),
  })
  if (winner === 'tooLate') return null
  return run.step('buy', () => `bought ${input.item}`)
})

const once = createLedger({ store: sqliteStore(join(folder, 'runs.db')) })
const engine = await createEngine({ ledger: once, runs: [purchase] })
const lamp = await engine.start(purchase, { runId: 'p-1', input: { item: 'lamp', patienceMs: 86_400_000 } })
await engine.signal('p-1', 'approved', null)
assert.equal(await lamp.result(), 'bought lamp')

const chair = await engine.start(purchase, { runId: 'p-2', input: { item: 'chair', patienceMs: 10 } })
assert.equal(await chair.result(), null)
console.log('the lamp was approved in time, and the chair was not')

await once.stop()
rmSync(folder, { recursive: true })
