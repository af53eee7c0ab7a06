/** Queues of runs: limits that hold over all processes, turns between keys, and one run for a dedupKey. */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { createEngine, defineQueue, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const once = createLedger({ store: sqliteStore(join(folder, 'runs.db')) })
const send = defineRun('send', async (run, to: string) => run.step('send', () => `sent to ${to}`), {
  timeoutMs: 60_000,
})

const mails = defineQueue('mails', { concurrency: 20, perKey: 2, rate: { limit: 100, perMs: 60_000 } })
const sender = await createEngine({ ledger: once, runs: [send], queues: [mails] })
const queued = await sender.enqueue(send, {
  queue: mails,
  key: 'acme',
  input: 'ann@example.com',
  dedupKey: 'welcome ann',
})
assert.equal(await queued.result(), 'sent to ann@example.com')

const [view] = await sender.queues.list()
console.log(view)

await once.stop()
rmSync(folder, { recursive: true })
