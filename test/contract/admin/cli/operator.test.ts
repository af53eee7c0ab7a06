import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { createLedger, final } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createOutbox } from 'onceonly/outbox'
import { createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import { startCommands } from '../../../support/admin/cli/commands.ts'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-operator-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const database = join(folder, 'store.db')

const env = { ...process.env, ONCEONLY_STORE: database, ONCEONLY_TEST_CLOCK: '1' }
const commands = startCommands(folder, env)
after(() => commands[Symbol.asyncDispose]())

async function onceonly(...args: string[]) {
  const ended = await commands.run(...args)
  return { ...ended, json: () => JSON.parse(ended.stdout) }
}

const who = { tenant: 'acme', caller: 'shop' }
const letter = { topic: 'paid', key: null, sequence: null, headers: {}, deliveries: 1, body: '{"amount":7}' }

test('an operator with nothing but a key finds the ten answers, and acts on them', async () => {
  // What a service left behind: a payment with an unknown outcome, a storm on another key, a dead letter.
  const store = sqliteStore(database, { testClock: true })
  const once = createLedger({ store, background: false })
  const outbox = createOutbox({ ledger: once })
  await outbox.prepare()
  const pay = once.operation<number>({ name: 'pay', effect: 'external' })
  await pay.execute({ ...who, key: 'order-1' }, 1, () => Promise.reject(new Error('cut')))
  await pay.run({ ...who, key: 'order-2' }, 1, async () => 'paid')
  for (let n = 0; n < 12; n++) await pay.run({ ...who, key: 'order-2' }, 1, async () => 'never')
  await pay.execute({ ...who, key: 'order-2' }, 2, async () => 'never')
  const inbox = createInbox({ ledger: once, consumer: 'billing', background: false })
  await inbox.receive({ ...letter, id: 'm-1' }, () => Promise.reject(final(new Error('\u001b[2Jcannot be handled'))))
  await inbox.stop()
  await once.stop()
  await store.stop()

  const status = await onceonly('status')
  assert.equal(status.status, 0, status.stderr)
  assert.match(status.stdout, /^unknown outcomes +1$/m)
  assert.match(status.stdout, /^inbox +dead letters: billing 1$/m)
  const [explained] = (await onceonly('explain', 'order-2', '--json')).json()
  assert.equal(explained.answers.length, 10)
  const answer = (topic: string) => explained.answers.find((each: { topic: string }) => each.topic === topic)
  assert.match(answer('storm').answer, /^a storm: 13 repeats/)
  assert.equal(answer('payload').alarming, true)
  const missing = await onceonly('explain', 'never-came')
  assert.deepEqual([missing.status, missing.stdout.includes('No record has this key')], [1, true])

  // Nothing is changed without a confirmation, and the audit names the operator.
  const identity = ['acme', 'shop', 'pay', 'order-1']
  const asked = await onceonly('resolve', ...identity, '--to', 'succeeded', '--value', '"paid"')
  assert.deepEqual([asked.status, /Say --yes/.test(asked.stderr)], [2, true])
  const resolved = await onceonly('resolve', ...identity, '--succeeded', '"paid"', '--yes', '--by', 'grace')
  assert.equal(resolved.status, 0, resolved.stderr)
  const again = await onceonly('resolve', ...identity, '--to', 'rerun', '--yes')
  assert.deepEqual([again.status, again.stderr.trim().split('\n').length], [2, 1], 'one clear line')
  const [waiting, ...others] = (await onceonly('unknowns', '--json')).json()
  assert.deepEqual([waiting.kind, waiting.consumer, others], ['dead_letter', 'billing', []])
  assert.match(waiting.end, /^onceonly inbox redrive billing /)
  assert.match((await onceonly('find', waiting.id)).stdout, /dead letter .*onceonly inbox dead billing/)

  const dead = await onceonly('inbox', 'dead', 'billing')
  assert.match(dead.stdout, /cannot be handled/)
  assert.ok(!dead.stdout.includes('\u001b'), 'texts of others move no cursor')
  assert.equal(
    (await onceonly('inbox', 'redrive', 'billing', 'all', '--preview', '--json')).json()[0].result,
    'publish',
  )
  assert.equal((await onceonly('inbox', 'redrive', 'billing', 'all', '--yes', '--json')).json()[0].result, 'published')
  assert.equal((await onceonly('events', '--json')).json().outbox.pending, 1)

  const audit = (await onceonly('audit', '--json')).json()
  assert.deepEqual(
    audit.map(({ what, result }: { what: string; result: string }) => `${what} ${result}`),
    ['inbox.redrive done', 'resolve refused', 'resolve done'],
  )
  assert.equal(audit[2].by, 'grace')
  assert.equal((await onceonly('doctor')).status, 0)
})

test('a run that had ended is not said to be cancelled, and a release of nothing says what can be released', async () => {
  const file = join(folder, 'runs.db')
  const store = sqliteStore(file)
  const once = createLedger({ store, background: false })
  const nap = defineRun('nap', (run) => run.sleep('nap', 3_600_000))
  const engine = await createEngine({ ledger: once, runs: [nap] })
  await engine.start(nap, { runId: 'n', input: null })
  await engine.stop()
  await once.operation<number>({ name: 'pay', effect: 'external' }).run({ ...who, key: 'o' }, 1, async () => 'paid')
  await once.stop()
  await store.stop()
  const on = (...args: string[]) => onceonly(...args, '--store', file)
  const cancel = ['run', 'cancel', 'n', '--yes']
  assert.deepEqual(
    [(await on(...cancel)).stdout, (await on(...cancel)).stdout],
    ['Cancelled.\n', 'Nothing was done: it had ended before.\n'],
  )
  const again = await on(...cancel, '--json')
  assert.deepEqual([again.status, again.json()], [1, { done: false, runId: 'n' }])
  const released = await on('release', 'acme', 'shop', 'pay', 'o', '--yes')
  assert.equal(released.status, 2)
  assert.match(released.stderr, /Only a claim that is held can be released/)
  const preview = await on('erase', 'workspace', 'acme', '--preview')
  assert.equal(preview.stdout, 'Would be erased: 1 records.\n')
})

test('what cannot be done is one clear line', async () => {
  const refused: [string[], RegExp][] = [
    [['status', '--store', join(folder, 'nothing.db')], /There is no store at/],
    [['status', '--store', 'postgres://127.0.0.1:1/none'], /needs the package `pg`/],
    [['status', '--store', 'mysql://x'], /no store that is known/],
    [['stale', '--limit', 'many'], /--limit is not a whole number from 1 to 500/],
    [['stale', '--since', 'yesterday'], /--since is not a time like/],
    [['status', '--nonsense'], /There is no option --nonsense/],
    [['inspect', 'only', 'three', 'parts'], /TENANT CALLER OPERATION KEY/],
    [['stale', '--limt', '3'], /There is no option --limt\. Did you mean --limit\?/],
    [['statsu'], /There is no command `statsu`\. Did you mean `status`\?/],
    [['runs', 'cancl'], /There is no command `runs cancl`\. Did you mean `runs cancel`\?/],
    [['runs', 'cancel'], /RUN_IDS is missing\. Name runs, or say which: --state, --definition/],
    [['resolve', '--id', 'x', '--suceeded'], /There is no option --suceeded\. Did you mean --succeeded\?/],
    [['inbox', 'redrve', 'billing'], /There is no command `inbox redrve`\. Did you mean `inbox redrive`\?/],
    [['records', '--state', 'sucseeded'], /--state is none of .*\. Did you mean succeeded\?/],
    [['run', 'cancel'], /RUN_ID is missing/],
  ]
  for (const [args, said] of refused) {
    const { status, stderr, stdout } = await onceonly(...args)
    assert.deepEqual([status, stdout], [2, ''], args.join(' '))
    assert.match(stderr, said)
    assert.equal(stderr.trim().split('\n').length, 1, stderr)
  }
  assert.match((await onceonly('resolve', '--help')).stdout, /--to succeeded\|failed\|rerun/)
})

test('the design checklist is printed, and an open answer is an exit status', async () => {
  const about = { businessUniqueness: 'a', outbox: 'b', documentation: 'c', tests: 'd', externalCalls: 'e' }
  const route = {
    kind: 'command',
    method: 'POST',
    path: '/pay',
    definition: { name: 'pay', effect: 'external', about },
  }
  const write = (name: string, given: object) =>
    writeFileSync(join(folder, name), `export const routes = [${JSON.stringify(given)}]`)
  write('onceonly.config.ts', route)
  const whole = await onceonly('checklist')
  assert.equal(whole.status, 0, whole.stderr)
  assert.match(whole.stdout, /1 routes, 0 answers are open/)
  write('open.ts', { ...route, definition: { ...route.definition, about: { ...about, tests: '' } } })
  const open = await onceonly('checklist', '--json', '--config', 'open.ts')
  assert.deepEqual([open.status, open.json().open.length], [1, 1])
})

test('a program that reads the output gets no colour, and the exit status', () => {
  const node = ['--conditions=onceonly-source', resolve('src/admin/cli/main.ts'), 'explain', 'never-came', '--json']
  const { status, stdout, stderr } = spawnSync(process.execPath, node, { cwd: folder, encoding: 'utf8', env })
  assert.deepEqual([status, stdout, stderr], [1, '[]\n', ''])
})

test('the reader of the output may close it early', async () => {
  const program = resolve(import.meta.dirname, '../../../../src/admin/cli/main.ts')
  const child = spawn(process.execPath, ['--conditions=onceonly-source', program, '--help'], { env })
  child.stdout.destroy()
  const ended = once(child, 'exit')
  const complained = text(child.stderr)
  assert.deepEqual(await ended, [0, null])
  assert.equal(await complained, '')
})
