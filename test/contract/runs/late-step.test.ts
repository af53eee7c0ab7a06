import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

/** A process that hangs is killed; a busy machine is not mistaken for one. */
const ENDS_MS_MOST = 120_000

/** A body that does not await its first step fails; that step ends after the store was stopped. */
const program = (path: string) => `
  import { createLedger } from 'onceonly'
  import { createEngine, defineRun } from 'onceonly/run'
  import { sqliteStore } from 'onceonly/sqlite'
  const gate = Promise.withResolvers()
  const both = defineRun('both', (run) =>
    Promise.all([run.step('late', () => gate.promise), run.step('second', () => null)]))
  const store = sqliteStore(${JSON.stringify(path)})
  const engine = await createEngine({ ledger: createLedger({ store, background: false }), runs: [both] })
  const handle = await engine.start(both, { runId: 'r', input: null })
  await handle.result().catch(() => undefined)
  await engine.stop()
  await store.stop()
  console.log('stopped')
  gate.resolve()`

test('a process ends by itself when a step ends after its engine and its store were stopped', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-late-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const args = ['--conditions=onceonly-source', '--input-type=module', '--eval', program(join(folder, 'runs.db'))]
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] })
  const limit = setTimeout(() => child.kill('SIGKILL'), ENDS_MS_MOST)
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
  })
  const [status] = await once(child, 'close')
  clearTimeout(limit)
  assert.deepEqual([status, printed.trim()], [0, 'stopped'])
})
