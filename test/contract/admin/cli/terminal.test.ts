import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLedger } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'

const isThere = spawnSync('script', ['--version']).status === 0
const skip = isThere ? false : 'The program `script`, which makes a terminal, is not installed'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-terminal-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const database = join(folder, 'store.db')
const MAIN = join(import.meta.dirname, '../../../../src/admin/cli/main.ts')
// Node shows no colours where it takes the terminal for a build's.
const { NO_COLOR: _off, FORCE_COLOR: _on, CI: _build, ...inherited } = process.env
const env = { ...inherited, ONCEONLY_STORE: database, ONCEONLY_TEST_CLOCK: '1', TERM: 'xterm-256color' }

/** The command on a terminal, where an answer is typed once the question is shown. */
async function atTerminal(
  args: readonly string[],
  typed: string | null = null,
): Promise<{ status: number; shown: string }> {
  const command = [process.execPath, '--conditions=onceonly-source', MAIN, ...args].map((each) => `'${each}'`).join(' ')
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: folder,
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  let hasTyped = typed === null
  for await (const chunk of child.stdout) {
    shown += String(chunk)
    if (!hasTyped && shown.includes('[y/N]')) {
      hasTyped = true
      child.stdin.write(`${typed}\n`)
    }
  }
  child.stdin.end()
  const status =
    child.exitCode ?? (await new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? -1))))
  return { status, shown }
}

test('at a terminal the operator confirms changes, and sees colours and the progress of long work', {
  skip,
}, async () => {
  const store = sqliteStore(database, { testClock: true })
  const once = createLedger({ store, background: false })
  const pay = once.operation<null>({ name: 'pay', effect: 'external' })
  const who = { tenant: 'acme', caller: 'shop' }
  await pay.execute({ ...who, key: 'order-1' }, null, () => Promise.reject(new Error('cut')))
  const brief = once.operation<null>({ name: 'brief', effect: 'external', retainMs: 1_000 })
  for (let n = 0; n < 5; n++) await brief.run({ ...who, key: `brief-${n}` }, null, async () => 'done')
  await store.clock.advance(3_600_000, { timeoutMs: 60_000 })
  const stateOf = async () => (await once.list({ operation: 'pay' })).rows[0]?.record.state

  const resolve = [
    'resolve',
    'acme',
    'shop',
    'pay',
    'order-1',
    '--to',
    'succeeded',
    '--value',
    '"paid"',
    '--by',
    'grace',
  ]
  const declined = await atTerminal(resolve, 'n')
  assert.equal(declined.status, 2, declined.shown)
  assert.match(
    declined.shown,
    /Resolve as succeeded: pay of acme\/shop under the key order-1, which is unknown\? \[y\/N\]/,
  )
  assert.match(declined.shown, /Nothing was done/)
  assert.equal(await stateOf(), 'unknown')
  const agreed = await atTerminal(resolve, 'y')
  assert.equal(agreed.status, 0, agreed.shown)
  assert.match(agreed.shown, /Resolved\./)
  assert.equal(await stateOf(), 'succeeded')

  const doctor = await atTerminal(['doctor'])
  assert.ok(doctor.shown.includes('\u001b[32mok'), doctor.shown)
  const sweep = await atTerminal(['sweep'])
  assert.match(sweep.shown, /\rrounds: 1/)
  assert.match(sweep.shown, /5 records are removed/)
  await once.stop()
  await store.stop()
})
