import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import type { Engine, RunContext } from 'onceonly/run'
import { defineQueue, defineRun, schedule } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { behaviours, untilState } from '../../support/runs/world.ts'

/*
 * What the suites of DBOS Transact and Temporal's TypeScript SDK check of queues and schedules. The comment of each names its
 * model: the file and the title of the test.
 */

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Runs until it is let go. */
const held = (name: string) =>
  defineRun(name, async (run: RunContext) => {
    await run.waitFor('go')
    return run.runId
  })

async function finish(engine: Engine, runId: string): Promise<void> {
  await engine.signal(runId, 'go', null)
  assert.equal(await engine.handle(runId).result(), runId)
}

const statesOf = async (engine: Engine, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await engine.get(id)).state))

behaviours([
  [
    'a queue of one place lets one run in at a time, in order, also when one fails or is cancelled',
    // DBOS wfqueue.test.ts `one-at-a-time`, `test-cancel-queues`
    () => {
      const order: string[] = []
      const one = defineQueue('one', { concurrency: 1 })
      const run = defineRun('ordered', async (context, way: 'ends' | 'fails' | 'waits') => {
        order.push(context.runId)
        if (way === 'fails') throw new Error('it fails')
        if (way === 'waits') await context.waitFor('never')
      })
      return {
        runs: [run],
        queues: [one],
        async play(engine) {
          const ways = ['waits', 'fails', 'waits', 'ends'] as const
          for (const [n, input] of ways.entries())
            await engine.enqueue(run, { queue: one, runId: `ordered ${n}`, input })
          await untilState(engine, 'ordered 0', 'sleeping')
          assert.deepEqual(await statesOf(engine, ['ordered 1', 'ordered 2', 'ordered 3']), Array(3).fill('queued'))
          // One that waits in the queue goes without ever having begun.
          await engine.cancel('ordered 2')
          await engine.cancel('ordered 0')
          await engine.handle('ordered 3').result()
          assert.deepEqual([...new Set(order)], ['ordered 0', 'ordered 1', 'ordered 3'])
        },
      }
    },
  ],
  [
    'while a run of a dedupKey waits or runs it is the one; afterwards there is a new one',
    // DBOS wfqueue.test.ts `test_deduplication`, `dedup-recovery`; singleton.test.ts `collision returns existing handle`, `fresh enqueue after completion starts a new workflow`
    () => {
      const run = held('single')
      const queue = defineQueue('singles', { concurrency: 1 })
      return {
        runs: [run],
        queues: [queue],
        async play(engine, world) {
          const put = async (by: Engine, runId: string) =>
            (await by.enqueue(run, { queue, runId, input: null, dedupKey: 'one' })).runId
          const other = await world.engine({ runs: [run], queues: [queue], work: false })
          assert.equal(await put(engine, 'single 1'), 'single 1')
          assert.equal(await put(other, 'single 2'), 'single 1')
          await untilState(engine, 'single 1', 'sleeping')
          assert.equal(await put(engine, 'single 2'), 'single 1')
          await finish(engine, 'single 1')
          assert.equal(await put(other, 'single 2'), 'single 2')
          await finish(engine, 'single 2')
          await other.stop()
        },
      }
    },
  ],
  [
    'runs begin by priority, and those of one priority in the order of enqueuing',
    // DBOS wfqueue.test.ts `test_priorityqueue`
    () => {
      const order: string[] = []
      const queue = defineQueue('ranks', { concurrency: 1 })
      const run = defineRun('ranked', async ({ runId }) => void order.push(runId))
      return {
        runs: [run],
        queues: [queue],
        async play(engine) {
          await engine.queues.pause('ranks')
          const put = (runId: string, priority?: number) =>
            engine.enqueue(run, { queue, runId, input: null, ...(priority !== undefined && { priority }) })
          for (const [runId, priority] of [['a'], ['b', 1], ['c', 5], ['d', 1], ['e'], ['f', -1]] as const)
            await put(runId, priority)
          await engine.queues.resume('ranks')
          await engine.handle('f').result()
          assert.deepEqual(order, ['c', 'b', 'd', 'a', 'e', 'f'])
        },
      }
    },
  ],
  [
    'a delayed run begins when its time has come, and one that is cancelled and resumed before need not wait again',
    // DBOS wfqueue.test.ts `test_delay`, `test_delay_cancel_resume`; Temporal test-integration-workflow-start.ts `Start of workflow is delayed`
    () => {
      const queue = defineQueue('delays')
      const run = defineRun('delayed', async () => 'ran')
      return {
        runs: [run],
        queues: [queue],
        async play(engine, { advance }) {
          for (const runId of ['delayed 1', 'delayed 2'])
            await engine.enqueue(run, { queue, runId, input: null, delayMs: HOUR })
          await advance(HOUR - MINUTE)
          assert.deepEqual(await statesOf(engine, ['delayed 1', 'delayed 2']), ['queued', 'queued'])
          await engine.cancel('delayed 2')
          await assert.rejects(engine.handle('delayed 2').result(), { code: 'run_cancelled' })
          await engine.resume('delayed 2')
          assert.equal(await engine.handle('delayed 2').result(), 'ran')
          assert.equal((await engine.get('delayed 1')).state, 'queued')
          await advance(MINUTE)
          assert.equal(await engine.handle('delayed 1').result(), 'ran')
        },
      }
    },
  ],
  [
    'a signal that comes before a run begins is there when it does',
    // Temporal test-integration-workflow-start.ts `Start of workflow with signal is delayed`, test-workflows.ts `failUnlessSignaledBeforeStart`
    () => {
      const queue = defineQueue('signalled')
      const run = held('signalled')
      return {
        runs: [run],
        queues: [queue],
        async play(engine, { advance }) {
          const { result, view } = await engine.enqueue(run, { queue, runId: 'early', input: null, delayMs: HOUR })
          await engine.signal('early', 'go', null)
          assert.equal((await view()).state, 'queued')
          await advance(HOUR)
          assert.equal(await result(), 'early')
        },
      }
    },
  ],
  [
    'a rate bounds how many begin within its span, and the time of a run begins when it is let in',
    // DBOS wfqueue.test.ts `test-queue_rate_limit`, `enqueue-workflow-withWorkflowTimeout`
    () => {
      const queue = defineQueue('rated', { rate: { limit: 2, perMs: HOUR } })
      const run = defineRun('rated', (context) => context.waitFor('go'), { timeoutMs: 2 * HOUR })
      return {
        runs: [run],
        queues: [queue],
        async play(engine, { advance }) {
          const ids = ['rated 1', 'rated 2', 'rated 3', 'rated 4']
          for (const runId of ids) await engine.enqueue(run, { queue, runId, input: null })
          for (const runId of ids.slice(0, 2)) await untilState(engine, runId, 'sleeping')
          assert.deepEqual(await statesOf(engine, ids.slice(2)), ['queued', 'queued'])
          await advance(HOUR)
          for (const runId of ids.slice(2)) await untilState(engine, runId, 'sleeping')
          await advance(HOUR)
          for (const runId of ids.slice(0, 2))
            await assert.rejects(engine.handle(runId).result(), { code: 'run_timed_out' })
          assert.deepEqual(await statesOf(engine, ids.slice(2)), ['sleeping', 'sleeping'])
          for (const runId of ids.slice(2)) await engine.cancel(runId)
        },
      }
    },
  ],
  [
    'one run at a time for each key, in order, however many keys there are',
    // DBOS wfqueue.test.ts `partitioned-queues`, `runs one workflow at a time per partition, in FIFO order`
    () => {
      const queue = defineQueue('keyed', { perKey: 1 })
      const run = held('keyed')
      return {
        runs: [run],
        queues: [queue],
        async play(engine) {
          const ids = ['a', 'b', 'c'].flatMap((key) => [1, 2].map((n) => `${key} ${n}`))
          for (const runId of ids) await engine.enqueue(run, { queue, key: runId.slice(0, 1), runId, input: null })
          for (const key of ['a', 'b', 'c']) await untilState(engine, `${key} 1`, 'sleeping')
          assert.deepEqual(await statesOf(engine, ['a 2', 'b 2', 'c 2']), Array(3).fill('queued'))
          await finish(engine, 'b 1')
          await untilState(engine, 'b 2', 'sleeping')
          assert.deepEqual(await statesOf(engine, ['a 2', 'c 2']), ['queued', 'queued'])
          for (const runId of ['a 1', 'c 1', 'a 2', 'b 2', 'c 2']) await finish(engine, runId)
        },
      }
    },
  ],
  [
    'a queue that is full holds up no other queue, nor runs that are started',
    // DBOS wfqueue.test.ts `test_multiple_queues`, `test_enqueue_options_require_a_queue`
    () => {
      const full = defineQueue('full', { concurrency: 1 })
      const free = defineQueue('free')
      const run = held('apart')
      return {
        runs: [run],
        queues: [full, free],
        async play(engine) {
          for (const runId of ['full 1', 'full 2']) await engine.enqueue(run, { queue: full, runId, input: null })
          await engine.enqueue(run, { queue: free, runId: 'free 1', input: null })
          await engine.start(run, { runId: 'started 1', input: null })
          for (const runId of ['full 1', 'free 1', 'started 1']) await untilState(engine, runId, 'sleeping')
          assert.equal((await engine.get('full 2')).state, 'queued')
          await assert.rejects(engine.enqueue(run, { runId: 'none', input: null } as never), (error) =>
            isOnceError(error, 'bad_option'),
          )
          await engine.cancel('full 2')
          for (const runId of ['full 1', 'free 1', 'started 1']) await finish(engine, runId)
        },
      }
    },
  ],
  [
    'a run of a queue continues in another process with its place, and repeats no step',
    // DBOS wfqueue.test.ts `test-queue-recovery`, `test-queue-concurrency-under-recovery`
    () => ({
      runs: [],
      async play(_, world) {
        let calls = 0
        const queue = defineQueue('handed over', { concurrency: 1 })
        const run = defineRun('handed over', async (context) => {
          await context.step('once', () => ++calls)
          await context.waitFor('go')
          return calls
        })
        const one = await world.engine({ runs: [run], queues: [queue] })
        for (const runId of ['h1', 'h2']) await one.enqueue(run, { queue, runId, input: null })
        await untilState(one, 'h1', 'sleeping')
        await one.stop()
        const two = await world.engine({ runs: [run], queues: [queue] })
        assert.deepEqual(await statesOf(two, ['h1', 'h2']), ['sleeping', 'queued'])
        await two.signal('h1', 'go', null)
        assert.equal(await two.handle('h1').result(), 1)
        await untilState(two, 'h2', 'sleeping')
        await two.signal('h2', 'go', null)
        assert.equal(await two.handle('h2').result(), 2)
        await two.stop()
      },
    }),
  ],
  [
    'a child waits in a queue of its own, with its key, and goes with its parent',
    // DBOS wfqueue.test.ts `child-wfs-queue`, `enqueue-workflow-withEnqueueChildTimeout`; workflow_management.test.ts `test-queue-child-workflow-middle`
    () => {
      const lanes = defineQueue('lanes', { concurrency: 2, perKey: 1 })
      const leaf = held('queued child')
      const run = defineRun('family', (context, of: string) =>
        context.all('children', {
          a: (branch) => branch.child(leaf, { input: null, id: `child a${of}`, queue: lanes, key: 'k', priority: 2 }),
          b: (branch) => branch.child(leaf, { input: null, id: `child b${of}`, queue: 'lanes', key: 'k' }),
          c: (branch) =>
            branch.child(leaf, { input: null, id: `child c${of}`, queue: lanes, key: 'other', priority: 1 }),
        }),
      )
      const inside = defineRun('inside', (context) =>
        context.child(leaf, { input: null, queue: lanes }).catch((error: unknown) => String(error)),
      )
      return {
        runs: [leaf, run, inside],
        queues: [lanes],
        async play(engine) {
          // All of them wait before the first is let in: then priorities decide.
          await engine.queues.pause('lanes')
          const { result } = await engine.start(run, { runId: 'family', input: '' })
          for (const id of ['child a', 'child b', 'child c']) await untilState(engine, id, 'queued')
          await engine.queues.resume('lanes')
          for (const id of ['child a', 'child c']) await untilState(engine, id, 'sleeping')
          assert.deepEqual(
            [(await engine.get('child b')).state, (await engine.get('child b')).parent],
            ['queued', 'family'],
          )
          for (const id of ['child a', 'child b', 'child c']) await finish(engine, id)
          assert.deepEqual(await result(), { a: 'child a', b: 'child b', c: 'child c' })
          const stuck = await engine.enqueue(inside, { queue: lanes, runId: 'inside', input: null })
          assert.match(String(await stuck.result()), /in which its parent has a place/)
          await engine.queues.pause('lanes')
          const again = await engine.start(run, { runId: 'other family', input: ' d' })
          await untilState(engine, 'child a d', 'queued')
          await engine.cancel(again.runId)
          await untilState(engine, 'child a d', 'cancelled')
          await engine.queues.resume('lanes')
        },
      }
    },
  ],
  [
    'a schedule puts its runs into a queue, which must be there',
    // DBOS scheduler.test.ts `schedule-with-queue-name`, `schedule-with-database-backed-queue`
    () => ({
      runs: [],
      async play(_, { engine, advance }) {
        const run = held('scheduled')
        const queue = defineQueue('of schedules', { concurrency: 1 })
        const hourly = schedule('hourly', { run, input: null, cron: '0 * * * *', overlap: 'skip', queue })
        await assert.rejects(engine({ runs: [run], schedules: [hourly] }), { code: 'bad_option' })
        const one = await engine({ runs: [run], schedules: [hourly], queues: [queue] })
        await one.enqueue(run, { queue, runId: 'before', input: null })
        await untilState(one, 'before', 'sleeping')
        await advance(HOUR)
        const tick = async () => (await one.list({ queue: 'of schedules', state: 'queued' })).runs
        const [waiting] = await until('its run waits', tick, ({ length }) => length === 1)
        // The run of a tick that waits in its queue has not ended.
        await advance(HOUR)
        await until('a tick was left out', async () => (await one.schedules.list())[0]?.skipped === 1)
        await finish(one, 'before')
        await finish(one, waiting?.runId ?? '')
        await one.stop()
      },
    }),
  ],
  [
    'a schedule is paused, triggered and resumed, and makes up for the ticks that no process saw',
    // Temporal test-schedules.ts `Can pause and unpause schedule`; DBOS scheduler.test.ts `test_client_trigger_schedule`, `automatic-backfill-on-restart`
    () => ({
      runs: [],
      async play(_, { engine, advance }) {
        const run = defineRun('ticking', async (_context, tick: string) => tick)
        const input = (tick: Date) => tick.toISOString()
        const schedules = [schedule('ticks', { run, input, cron: '0 * * * *', catchUp: 'all', overlap: 'queue' })]
        const one = await engine({ runs: [run], schedules })
        const view = async (by: Engine) =>
          (await by.schedules.list()).find(({ name }) => name === 'ticks') ?? assert.fail()
        await one.schedules.pause('ticks')
        await advance(3 * HOUR)
        const runId = await one.schedules.trigger('ticks', { id: 'now' })
        await untilState(one, runId, 'succeeded')
        assert.equal((await view(one)).started, 1)
        await one.schedules.resume('ticks')
        await one.stop()
        await advance(3 * HOUR)
        const two = await engine({ runs: [run], schedules })
        await until('it has made up for them', async () => {
          await advance(5_000)
          return (await view(two)).started === 4
        })
        await two.stop()
      },
    }),
  ],
])
