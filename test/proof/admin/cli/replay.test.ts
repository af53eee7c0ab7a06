import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import { quietLedger } from '../../../support/quiet-ledger.ts'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-cli-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const database = join(folder, 'runs.db')

/** The code of a deploy: a module that the command loads, with a text that may have been changed. */
function deploy(text: string): string {
  const source = `
    import { defineRun } from ${JSON.stringify(resolve('src/runs/index.ts'))}
    import { sqliteStore } from ${JSON.stringify(resolve('src/ledger/stores/sqlite/index.ts'))}
    const offer = { kind: 'native', windowMs: 60_000, comparesBody: false, keepsFailures: false }
    const channel = { name: 'mail', offer, send: async () => { throw new Error('a replay must not send') } }
    export const runs = [
      defineRun('welcome', async (run, input: { name: string }) => {
        await run.step('mail', { channel }, () => ({ to: input.name, text: ${JSON.stringify(text)} + (process.env.SECRET ?? '') }))
        console.log('the code talks')
        if (${JSON.stringify(text)} === 'dying' && input.name === 'n3') process.exit(3)
        await fetch('http://127.0.0.1:9/').catch(() => {})
        return 'done'
      }),
    ]
    export const store = () => sqliteStore(${JSON.stringify(database)})`
  const file = join(folder, 'onceonly.config.ts')
  writeFileSync(file, source)
  return file
}

function onceonly(...args: string[]) {
  const node = ['--conditions=onceonly-source', resolve('src/admin/cli/main.ts'), ...args]
  const env = { ...process.env, SECRET: 'credential', NO_COLOR: '1' }
  const { status, stdout, stderr } = spawnSync(process.execPath, node, { cwd: folder, encoding: 'utf8', env })
  return { status, stdout, stderr }
}

test('runs are replayed by one command: identical, diverged, many at once', async () => {
  const store = sqliteStore(database)
  const channel = {
    name: 'mail',
    offer: { kind: 'native', windowMs: 60_000, comparesBody: false, keepsFailures: false } as const,
    send: async () => 'sent',
  }
  const welcome = defineRun('welcome', async (run, input: { name: string }) => {
    await run.step('mail', { channel }, () => ({ to: input.name, text: 'hello' }))
    return 'done'
  })
  const engine = await createEngine({ ledger: quietLedger(store), runs: [welcome] })
  const handles = await Promise.all(
    Array.from({ length: 30 }, (_, n) => engine.start(welcome, { runId: `r-${n}`, input: { name: `n${n}` } })),
  )
  await Promise.all(handles.map((handle) => handle.result()))
  await engine.stop()
  await store.stop()

  deploy('hello')
  const same = onceonly('replay', 'r-7')
  assert.equal(same.stderr, 'the code talks\n', 'output of the code does not mix with the answers')
  assert.equal(same.status, 0)
  assert.match(same.stdout, /r-7: identical/)
  assert.match(same.stdout, /performed 0 actions .*1 refused/)

  const all = onceonly('replay', '--all', '--since', '1h')
  assert.equal(all.status, 0, all.stderr)
  assert.match(all.stdout, /30 replayed: 30 identical/)
  assert.match(all.stderr, /replayed: 30\/30/)

  deploy('good morning')
  const other = onceonly('replay', 'r-7')
  assert.equal(other.status, 1)
  assert.match(other.stdout, /~ mail changed\n +\$\.text\n +- 'hello'\n +\+ 'good morning'/)
  assert.equal(onceonly('replay', 'r-7', '--ignore', 'mail: $.text').status, 0)
  const json = JSON.parse(onceonly('replay', 'r-7', '--json').stdout) as { verdict: string }
  assert.equal(json.verdict, 'diverged')
})

test('a run that cannot be replayed is counted, and the others continue', () => {
  deploy('dying')
  const kept = new DatabaseSync(database, { timeout: 60_000 })
  kept.exec("update onceonly_runs set version = 2 where id = 'r-4'")
  kept.exec("update onceonly_runs set ended_at = 1 where id = 'r-5'")
  kept.close()
  const some = onceonly('replay', '--all', '--ignore', 'mail: $.text')
  assert.equal(some.status, 1, some.stderr)
  assert.match(
    some.stdout,
    /27 replayed: 0 identical, 27 but for ignored paths, 0 diverged\n2 could not be replayed, 1 not kept/,
  )
  assert.match(some.stderr, /r-3 could not be replayed: The replaying process ended \(3\)/)
  assert.match(some.stderr, /r-4 could not be replayed: It is a welcome, version 2/)

  const named = onceonly('replay', 'r-4', 'r-5', '--json')
  assert.equal(named.status, 2)
  const lines = named.stdout.trim().split('\n')
  const reports = lines.map((line) => JSON.parse(line) as { runId: string; error: string })
  assert.deepEqual(
    reports.map(({ runId }) => runId),
    ['r-4', 'r-5'],
  )
  assert.match(reports[1]?.error ?? '', /ended too long ago/)
})

test('what cannot be done is reported in one sentence', () => {
  deploy('hello')
  for (const [args, said] of [
    [['replay'], /Name a run, or say --all/],
    [['replay', 'unknown'], /There is no run unknown/],
    [['replay', '--all', '--since', 'yesterday'], /not a time like 12h or 7d/],
    [['replay', 'r-1', '--config', 'missing.ts'], /missing\.ts is not there/],
    [['replay', '--nonsense'], /nonsense/],
    [['nonsense'], /There is no command/],
  ] as const) {
    const { status, stderr } = onceonly(...args)
    assert.equal(status, 2, args.join(' '))
    assert.match(stderr, said)
    assert.ok(!stderr.includes('    at '), stderr)
  }
  assert.equal(onceonly('--help').status, 0)
  assert.match(onceonly('replay', '--help').stdout, /--since/)
})
