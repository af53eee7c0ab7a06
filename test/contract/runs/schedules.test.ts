import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from 'onceonly'
import type { Engine, RunContext, RunScheduleOptions } from 'onceonly/run'
import { defineQueue, defineRun, schedule } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, type RunWorld, untilState } from '../../support/runs/world.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A schedule of every hour. */
function hourly(options: Partial<RunScheduleOptions<string>> = {}) {
  const run = defineRun('report', async (context: RunContext, tick: string) => context.step('send', () => tick))
  const input = (tick: Date) => tick.toISOString()
  return { run, hours: schedule('hourly', { run, input, cron: '0 * * * *', ...options }) }
}

async function open(world: RunWorld, { run, hours }: ReturnType<typeof hourly>): Promise<Engine> {
  return world.engine({ runs: [run], schedules: [hours] })
}

async function startedIds(engine: Engine): Promise<string[]> {
  const { runs } = await engine.list({ definition: 'report' })
  return runs.map(({ runId }) => runId).sort()
}

/** The next tick, as the store has it. */
async function nextTick(engine: Engine): Promise<number> {
  const [found] = await engine.schedules.list()
  return found?.nextAt ?? assert.fail('there is no next tick')
}

/** The result of a run that a tick will start. */
async function resultOf(engine: Engine, runId: string): Promise<unknown> {
  await until(`${runId} has started`, async () => (await engine.list({})).runs.some((run) => run.runId === runId))
  return engine.handle(runId).result()
}

const idOf = (tick: number) => `schedule:hourly:${new Date(tick).toISOString()}`

onEveryRunStore('a tick starts one run, whatever the number of processes, with the time of the tick', async (world) => {
  const engines = [await open(world, hourly()), await open(world, hourly()), await open(world, hourly())]
  const [engine] = engines as [Engine]
  const first = await nextTick(engine)
  for (let tick = first; tick < first + 5 * HOUR; tick += HOUR) {
    await world.advance(HOUR)
    assert.equal(await resultOf(engine, idOf(tick)), new Date(tick).toISOString())
  }
  assert.equal((await startedIds(engine)).length, 5)
  assert.equal(world.events.filter(({ kind }) => kind === 'started').length, 5)
  const [view] = await engine.schedules.list()
  assert.deepEqual([view?.started, view?.skipped, view?.lastRun], [5, 0, idOf(first + 4 * HOUR)])
})

onEveryRunStore('of the ticks that no process saw the last one is made up for, or all, or none', async (world) => {
  const { clock } = world.store()
  // Half an hour from any tick: in the first minute behind one, that tick counts as seen.
  await world.advance((1.5 * HOUR - ((await clock.now({ timeoutMs: 60_000 })) % HOUR)) % HOUR)
  for (const [catchUp, count] of [
    ['last', 1],
    ['all', 24],
    ['none', 0],
  ] as const) {
    const options = { catchUp, overlap: 'cancel', cron: '0 * * * *' } as const
    const run = defineRun(`of ${catchUp}`, async (context: RunContext, tick: string) =>
      context.step('send', () => tick),
    )
    const input = (tick: Date) => tick.toISOString()
    const schedules = [schedule(catchUp, { run, input, ...options })]
    await (await world.engine({ runs: [run], schedules })).stop()
    await world.advance(DAY)
    const engine = await world.engine({ runs: [run], schedules })
    const at = async () => (await engine.schedules.list()).find(({ name }) => name === catchUp)
    const now = await clock.now({ timeoutMs: 60_000 })
    await until('it looks ahead again', async () => ((await at())?.nextAt ?? 0) > now)
    assert.equal((await at())?.started, count, catchUp)
    await engine.stop()
  }
})

onEveryRunStore('a tick before the last run has ended is left out, waits, or ends that run', async (world) => {
  for (const overlap of ['skip', 'queue', 'cancel'] as const) {
    const run = defineRun(`of ${overlap}`, async (context: RunContext, tick: string) => {
      await context.waitFor('end')
      return tick
    })
    const input = (tick: Date) => tick.toISOString()
    const engine = await world.engine({
      runs: [run],
      schedules: [schedule(overlap, { run, input, cron: '0 * * * *', overlap })],
    })
    const view = async () => (await engine.schedules.list()).find(({ name }) => name === overlap) ?? assert.fail()
    const first = (await view()).nextAt ?? assert.fail()
    const runAt = (tick: number) => `schedule:${overlap}:${new Date(tick).toISOString()}`
    await world.advance(HOUR)
    await until('the first has started', async () => (await view()).started === 1)
    await world.advance(HOUR)
    if (overlap === 'skip') {
      await until('a tick was left out', async () => (await view()).skipped === 1)
      assert.equal((await view()).started, 1)
    } else if (overlap === 'queue') {
      assert.equal((await view()).started, 1)
      await engine.signal(runAt(first), 'end', null)
      await engine.handle(runAt(first)).result()
      await world.advance(5_000)
      await until('the second has started', async () => (await view()).started === 2)
    } else {
      await until('the second has started', async () => (await view()).started === 2)
      assert.equal((await engine.get(runAt(first))).state, 'cancelled')
    }
    await engine.stop()
  }
})

onEveryRunStore('a paused schedule starts nothing but what is triggered, and continues from now on', async (world) => {
  const engine = await open(world, hourly())
  await engine.schedules.pause('hourly')
  await world.advance(3 * HOUR)
  const triggered = await engine.schedules.trigger('hourly', { id: 'by hand' })
  assert.equal(triggered, 'schedule:hourly:by hand')
  await resultOf(engine, triggered)
  assert.equal(await engine.schedules.trigger('hourly', { id: 'by hand' }), triggered)
  await engine.schedules.resume('hourly')
  const next = await nextTick(engine)
  await world.advance(HOUR)
  await resultOf(engine, idOf(next))
  assert.deepEqual(await startedIds(engine), [idOf(next), triggered])
  await assert.rejects(engine.schedules.pause('nightly'), (error) => isOnceError(error, 'not_found'))
})

onEveryRunStore('an input that cannot be given holds up its own schedule alone, and is shown', async (world) => {
  const { run, hours } = hourly()
  let isBroken = true
  const input = (tick: Date): string => {
    if (isBroken) throw new Error('no rates for this day')
    return tick.toISOString()
  }
  const broken = schedule('broken', { run, input, cron: '0 * * * *' })
  const unrecorded = schedule('unrecorded', { run, input: () => (() => {}) as never, cron: '0 * * * *' })
  const mail = defineQueue('mail')
  const sleeper = defineRun('sleeper', (context: RunContext) => context.sleep('an hour', HOUR))
  const engine = await world.engine({
    runs: [run, sleeper],
    schedules: [broken, unrecorded, hours],
    queues: [mail],
  })
  const viewOf = async (name: string) => (await engine.schedules.list()).find((each) => each.name === name)
  const first = await nextTick(engine)
  const slept = await engine.start(sleeper, { runId: 'slept', input: null })
  await untilState(engine, 'slept', 'sleeping')
  const delayed = await engine.enqueue(run, { queue: mail, runId: 'delayed', input: 'delayed', delayMs: HOUR })
  await world.advance(HOUR)
  assert.equal(await resultOf(engine, idOf(first)), new Date(first).toISOString())
  await slept.result()
  assert.equal(await delayed.result(), 'delayed')
  for (const [name, reason] of [
    ['broken', /no rates for this day/],
    ['unrecorded', /function/],
  ] as const) {
    const { failure, started, nextAt } = (await viewOf(name)) ?? assert.fail()
    assert.match(failure?.message ?? '', reason)
    assert.ok((failure?.attempts ?? 0) > 0 && (failure?.retryAt ?? 0) > first)
    assert.deepEqual([started, nextAt], [0, first], 'the tick is kept')
  }
  const errors = world.events.flatMap((event) => (event.kind === 'background_failed' ? [String(event.error)] : []))
  assert.ok(errors.some((text) => text.includes('broken') && text.includes('no rates for this day')))
  isBroken = false
  await world.advance(5 * 60_000)
  const runId = `schedule:broken:${new Date(first).toISOString()}`
  assert.equal(await resultOf(engine, runId), new Date(first).toISOString())
  const mended = (await viewOf('broken')) ?? assert.fail()
  assert.deepEqual([mended.failure, mended.started, mended.lastRun], [null, 1, runId])
})

onEveryRunStore(
  'what is triggered stands beside the ticks, and those of a paused schedule stay behind',
  async (world) => {
    const waiting = (overlap: 'cancel' | 'skip') => {
      const run = defineRun(`of ${overlap}`, (context: RunContext) => context.waitFor('end'))
      return { run, hours: schedule(overlap, { run, input: null, cron: '0 * * * *', overlap }) }
    }
    const [cancel, skip] = [waiting('cancel'), waiting('skip')]
    const given = { runs: [cancel.run, skip.run], schedules: [cancel.hours, skip.hours] }
    await (await world.engine(given)).stop()
    const operator = await world.engine({ ...given, work: false })
    const { pause, trigger, list } = operator.schedules
    const viewOf = async (name: string) => (await list()).find((each) => each.name === name) ?? assert.fail()
    const first = (await viewOf('skip')).nextAt ?? assert.fail()
    await pause('cancel')
    await world.advance(HOUR)
    await trigger('cancel', { id: 'by hand' })
    await trigger('skip', { id: 'by hand' })
    const engine = await world.engine(given)
    await untilState(engine, 'schedule:cancel:by hand', 'sleeping')
    await untilState(engine, 'schedule:skip:by hand', 'sleeping')
    const tick = `schedule:skip:${new Date(first).toISOString()}`
    await untilState(engine, tick, 'sleeping')
    const idsOf = async (definition: string) => (await engine.list({ definition })).runs.map(({ runId }) => runId)
    assert.deepEqual(await idsOf('of cancel'), ['schedule:cancel:by hand'])
    assert.equal((await viewOf('cancel')).started, 1)
    const { started, skipped, lastRun } = await viewOf('skip')
    assert.deepEqual([started, skipped, lastRun], [2, 0, tick])
    // The next tick is left out because of the tick before it, not because of what was triggered.
    await engine.signal('schedule:skip:by hand', 'end', null)
    await engine.handle('schedule:skip:by hand').result()
    await world.advance(HOUR)
    await until('a tick was left out', async () => (await viewOf('skip')).skipped === 1)
  },
)

onEveryRunStore('what was triggered before a pause starts all the same', async (world) => {
  const given = hourly()
  await (await open(world, given)).stop()
  const operator = await world.engine({ runs: [given.run], schedules: [given.hours], work: false })
  const runId = await operator.schedules.trigger('hourly', { id: 'by hand' })
  await operator.schedules.pause('hourly')
  await resultOf(await open(world, given), runId)
})

onEveryRunStore('changed code continues from now on, and code of before leaves the schedule alone', async (world) => {
  const old = await open(world, hourly())
  const { run, hours } = hourly({ cron: '30 * * * *' })
  const engine = await world.engine({ runs: [run], schedules: [hours] })
  const next = await nextTick(engine)
  assert.equal(new Date(next).getUTCMinutes(), 30)
  await world.advance(2 * HOUR)
  await until('it has started', async () => (await startedIds(engine)).length > 0)
  await old.stop()
  assert.ok((await startedIds(engine)).every((id) => id.endsWith(':30:00.000Z')))
})

test('what is no schedule is refused with what is wrong', async () => {
  const run = defineRun('report', async () => null)
  const cases: readonly [options: object, text: RegExp][] = [
    [{ run, input: null, cron: 'nightly' }, /cannot follow the cron "nightly"/],
    [{ run, input: null, cron: '0 0 31 2 *' }, /names no time that will come/],
    [{ run, input: null, cron: '0 3 * * *', timezone: 'Mars/Base' }, /in "Mars\/Base"/],
    [{ run, input: null, cron: 3 }, /needs a `cron` as text/],
    [{ input: null, cron: '0 3 * * *' }, /needs a `run`/],
    [
      { run, input: null, cron: '0 3 * * *', overlap: 'wait' },
      /has the overlap "wait": give 'skip', 'queue', 'cancel'/,
    ],
    [{ run, input: null, cron: '0 3 * * *', catchup: 'all' }, /no option `catchup`/],
  ]
  for (const [options, text] of cases) {
    assert.throws(
      () => schedule('nightly', options as never),
      (error) => isOnceError(error, 'bad_option') && text.test(error.message),
    )
  }
})

onEveryRunStore('an engine needs the definition of every schedule', async (world) => {
  const { run, hours } = hourly()
  const other = defineRun('other', async () => null)
  await assert.rejects(world.engine({ runs: [other], schedules: [hours] }), /add it to `runs`/)
  await assert.rejects(world.engine({ runs: [run], schedules: [hours, hours] }), /Two schedules have the same name/)
})
