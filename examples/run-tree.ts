import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const released: string[] = []

const ship = defineRun('ship', (run, item: string) => run.step('book', () => `parcel of ${item}`))

const order = defineRun('order', async (run, input: { item: string }) => {
  await run.setAttributes({ item: input.item })
  // Declared before the step that it undoes: a cancel runs it, also after a crash.
  await run.onCancel('release', (cleanUp) => cleanUp.step('release', () => released.push(input.item)))
  await run.step('reserve', () => 'reserved')
  await run.emit('progress', { done: 'reserved' })
  const paid = await run.waitFor('paid', { timeoutMs: 86_400_000 })
  if (paid.kind === 'timed_out') return null
  return run.child(ship, { input: input.item })
})

const once = createLedger({ store: sqliteStore(join(folder, 'runs.db')) })
const engine = await createEngine({ ledger: once, runs: [order, ship] })
const handle = await engine.start(order, { runId: 'o-1', input: { item: 'lamp' } })
for await (const event of handle.events()) {
  assert.deepEqual(event.value, { done: 'reserved' })
  await engine.signal('o-1', 'paid', null)
}
assert.equal(await handle.result(), 'parcel of lamp')
assert.equal((await engine.list({ attributes: { item: 'lamp' } })).runs.length, 1)

// What came before the step is copied, what comes behind it is done anew.
await engine.fork('o-1', { runId: 'o-2', from: 'paid' })
await engine.cancel('o-2')
await assert.rejects(engine.handle('o-2').result(), { code: 'run_cancelled' })
assert.deepEqual(released, ['lamp'])
console.log('shipped once; the fork was cancelled and released its lamp')

await once.stop()
rmSync(folder, { recursive: true })
