import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import type { Channel } from 'onceonly/run'
import { createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const path = join(folder, 'runs.db')

// A provider that honours keys for a day; `httpChannel` makes one of the profiles in `providers`.
const sent: string[] = []
const mail: Channel<{ to: string; text: string }, string> = {
  name: 'mail',
  offer: { kind: 'native', windowMs: 86_400_000, comparesBody: false, keepsFailures: false },
  send: async ({ to, text }) => `mail ${sent.push(`${to}: ${text}`)}`,
}

const onboard = (greeting: string) =>
  defineRun('onboard', async (run, input: { email: string }) => {
    const id = await run.step('create', ({ effectKey }) => `account ${effectKey.slice(0, 8)}`)
    // The process may end meanwhile: another one continues.
    const confirmed = await run.waitFor('confirmed')
    await run.step('welcome', { channel: mail }, () => ({ to: input.email, text: `${greeting}, ${confirmed.kind}` }))
    return id
  })

const hello = onboard('Hello')
const monday = createLedger({ store: sqliteStore(path) })
const first = await createEngine({ ledger: monday, runs: [hello], pollMs: 20 })
const started = await first.start(hello, { runId: 'u-42', input: { email: 'ann@example.com' } })
// Starting it again is the same run; another input under its id would be refused.
await first.start(hello, { runId: 'u-42', input: { email: 'ann@example.com' } })
await monday.stop()

const tuesday = createLedger({ store: sqliteStore(path) })
const second = await createEngine({ ledger: tuesday, runs: [hello], pollMs: 20 })
await second.signal('u-42', 'confirmed', null)
const account = await second.handle<string>(started.runId).result()
assert.match(account, /^account /)
assert.deepEqual(sent, ['ann@example.com: Hello, received'])
await second.stop()

// Before a deploy: what would the new code have done? Nothing is sent.
const next = await createEngine({ ledger: tuesday, runs: [onboard('Welcome')], work: false })
const replay = await next.replay('u-42')
assert.equal(replay.verdict, 'diverged')
assert.deepEqual(replay.steps.find(({ id }) => id === 'welcome')?.diff, [
  { path: '$.text', original: 'Hello, received', replayed: 'Welcome, received' },
])
assert.equal(sent.length, 1)
console.log(`${account}: one run over two processes, one mail, and a diff of what the new code would send`)
await tuesday.stop()
rmSync(folder, { recursive: true })
