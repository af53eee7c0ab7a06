import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { createEngine, defineRun, schedule } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const once = createLedger({ store: sqliteStore(join(folder, 'runs.db')) })

const report = defineRun('report', async (run, day: string) => run.step('send', () => `report of ${day}`))

const nightly = schedule('nightly', {
  run: report,
  input: (tick) => tick.toISOString().slice(0, 10),
  cron: '0 3 * * *',
  timezone: 'Europe/Berlin',
})
const engine = await createEngine({ ledger: once, runs: [report], schedules: [nightly] })

const [entered] = await engine.schedules.list()
assert.ok(entered?.nextAt !== undefined && entered.nextAt !== null)
assert.equal(
  new Intl.DateTimeFormat('en', { hour: '2-digit', hour12: false, timeZone: 'Europe/Berlin' }).format(entered.nextAt),
  '03',
)

// By hand, beside the ticks; the same id again starts nothing.
const runId = await engine.schedules.trigger('nightly', { id: 'first try' })
let runs = await engine.list({ definition: 'report' })
while (runs.runs.length === 0) {
  await new Promise((resolve) => setTimeout(resolve, 20))
  runs = await engine.list({ definition: 'report' })
}
const sent = await engine.handle<string>(runId).result()
assert.match(sent, /^report of \d{4}-\d\d-\d\d$/)
console.log(`${runId}: ${sent}, and the next one at ${new Date(entered.nextAt).toISOString()}`)
await once.stop()
rmSync(folder, { recursive: true })
