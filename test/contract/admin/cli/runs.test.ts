import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLedger } from 'onceonly'
import type { Engine } from 'onceonly/run'
import { createEngine, defineQueue, defineRun, schedule } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import { until } from '../../../../src/testing/until.ts'
import { startCommands } from '../../../support/admin/cli/commands.ts'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-runs-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const database = join(folder, 'store.db')
const commands = startCommands(folder, { ...process.env, ONCEONLY_STORE: database, ONCEONLY_TEST_CLOCK: '1' })
after(() => commands[Symbol.asyncDispose]())

interface Page {
  readonly events: readonly { readonly value: { readonly big: string } }[]
}

async function onceonly(...args: string[]): Promise<{ readonly out: string; readonly err: string; json<T>(): T }> {
  const { status, stdout, stderr } = await commands.run(...args)
  assert.equal(status, 0, `${args.join(' ')}: ${stderr}`)
  return { out: stdout, err: stderr, json: <T>() => JSON.parse(stdout) as T }
}

const untilState = (engine: Engine, runId: string, wanted: string) =>
  until(
    `${runId} is ${wanted}`,
    () => engine.get(runId).catch(() => null),
    (view) => view?.state === wanted,
  )

const ship = defineRun('ship', async (run, item: string) => {
  await run.waitFor('go')
  return run.step('book', () => `parcel of ${item}`)
})
const order = defineRun(
  'order',
  async (run, item: string) => {
    await run.setAttributes({ item })
    await run.emit('progress', { big: 2n ** 64n })
    return run.child(ship, { input: item, queue: 'parcels', key: 'ann', priority: 2 })
  },
  { timeoutMs: 3_600_000 },
)
const parcels = defineQueue('parcels', { concurrency: 1 })
const hourly = schedule('hourly', { run: ship, input: 'clock', cron: '0 * * * *' })
const broken = schedule('broken', {
  run: ship,
  input: (): string => {
    throw new Error('no rates for this day')
  },
  cron: '0 * * * *',
})

test('an operator sees runs of runs, queues and schedules, and acts on them', async () => {
  const once = createLedger({ store: sqliteStore(database, { testClock: true }), on: () => {} })
  const engine = await createEngine({
    ledger: once,
    runs: [order, ship],
    queues: [parcels],
    schedules: [hourly, broken],
    pollMs: 20,
    on: () => {},
  })
  try {
    await engine.start(order, { runId: 'o-1', input: 'lamp' })
    await untilState(engine, 'o-1~ship', 'sleeping')
    await engine.enqueue(ship, { queue: parcels, runId: 'waiting', input: 'chair', dedupKey: 'chair 7' })

    const parent = (await onceonly('run', 'o-1')).out
    assert.match(parent, /^attributes +\{"item":"lamp"\}$/m)
    assert.match(parent, /^fails at +20/m)
    assert.match(parent, /^ship +child +waiting .* o-1~ship$/m)
    const child = (await onceonly('run', 'o-1~ship')).out
    assert.match(child, /^queue +parcels, key ann, priority 2, let in 20/m)
    assert.match(child, /^parent +o-1$/m)
    assert.match((await onceonly('run', 'waiting')).out, /^queue +parcels, dedupKey chair 7, waits since 20/m)
    const tree = (await onceonly('run', 'tree', 'o-1')).out
    assert.match(tree, /^o-1 +order +sleeping .*\n {2}o-1~ship +ship +sleeping/m)
    const events = (await onceonly('run', 'events', 'o-1')).out
    assert.match(events, /progress +\{"big":"18446744073709551616"\}$/m)
    assert.equal(
      (await onceonly('run', 'events', 'o-1', '--json')).json<Page>().events[0]?.value.big,
      '18446744073709551616',
    )

    assert.match((await onceonly('queue', 'list')).out, /waiting since\nparcels +active +1 +1 +any +any +1 .*20\d\d-/)
    assert.equal((await onceonly('queue', 'pause', 'parcels', '--yes')).out, 'Paused.\n')
    await engine.signal('o-1~ship', 'go', null)
    assert.equal(await engine.handle('o-1').result(), 'parcel of lamp')
    assert.equal((await onceonly('queue', 'list', '--json')).json<readonly { paused: boolean }[]>()[0]?.paused, true)
    assert.equal((await engine.get('waiting')).state, 'queued')
    assert.equal((await onceonly('queue', 'resume', 'parcels', '--yes')).out, 'Resumed.\n')
    await untilState(engine, 'waiting', 'sleeping')

    const forked = await onceonly('run', 'fork', 'o-1', 'o-2', '--from', 'ship', '--yes')
    assert.equal(forked.out, 'o-2 was started.\n')
    await untilState(engine, 'o-2~ship', 'queued')
    assert.match((await onceonly('run', 'o-2')).out, /^forked from +o-1 at /m)
    assert.match((await onceonly('run', 'events', 'o-1')).out, /^o-1 has ended as succeeded\.$/m)

    await onceonly('schedule', 'pause', 'hourly', '--yes')
    assert.match((await onceonly('schedules')).out, /^hourly .* paused/m)
    const triggered = await onceonly('schedule', 'trigger', 'hourly', '--id', 'by-hand', '--yes')
    assert.match(triggered.out, /^schedule:hourly:by-hand starts as soon as/)
    await untilState(engine, 'schedule:hourly:by-hand', 'sleeping')
    await onceonly('schedule', 'resume', 'hourly', '--yes')
    await onceonly('schedule', 'trigger', 'broken', '--id', 'by-hand', '--yes')
    await until('it cannot start', async () => (await engine.schedules.list()).some(({ failure }) => failure !== null))
    const schedules = (await onceonly('schedules')).out
    assert.match(schedules, /^broken .* cannot start, again at 20.* no rates for this day$/m)
    assert.doesNotMatch(schedules, /paused/)

    const { out, err } = await onceonly('runs', 'cancel', '--state', 'sleeping', '--yes')
    assert.match(out, /^changed +waiting /m)
    assert.match(err, /100 %/, 'the bar comes to its end')
  } finally {
    await engine.stop()
    await once.stop()
  }
})
