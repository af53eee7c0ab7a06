import assert from 'node:assert/strict'
import { isOnceError, notDone } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { behaviours, untilState } from '../../support/runs/world.ts'

/*
 * What the suites of DBOS Transact, Temporal's TypeScript SDK and Inngest check of sleeps, signals and timers, as tests of
 * our own. The comment of each names its model: the file and the title of the test.
 */

const MINUTE = 60_000
const HOUR = 60 * MINUTE

behaviours([
  [
    'a sleep that began before a restart does not begin again',
    // DBOS oaoo.test.ts `workflow-sleep-oaoo`
    () => ({
      runs: [],
      async play(_, { engine, advance }) {
        const run = defineRun('sleeper', async (context) => {
          await context.sleep('long', HOUR)
          return 'awake'
        })
        const one = await engine({ runs: [run] })
        await one.start(run, { runId: 'sleeper', input: null })
        await untilState(one, 'sleeper', 'sleeping')
        await one.stop()
        await advance(HOUR / 2)
        const two = await engine({ runs: [run] })
        await advance(HOUR / 2)
        assert.equal(await two.handle('sleeper').result(), 'awake')
        await two.stop()
      },
    }),
  ],
  [
    'a signal that was received before a restart is received once, and the next one next',
    // DBOS oaoo.test.ts `workflow-recv-oaoo`; recovery.test.ts `recv-recovery-with-two-processes-on-local`
    () => ({
      runs: [],
      async play(_, { engine }) {
        const run = defineRun('receiver', async (context) => {
          const first = await context.waitFor('mail')
          const second = await context.waitFor('mail')
          return [first, second]
        })
        const one = await engine({ runs: [run] })
        await one.start(run, { runId: 'receiver', input: null })
        await one.signal('receiver', 'mail', 1)
        await until(
          'one was received',
          () => one.get('receiver'),
          ({ steps, state }) => steps.length === 2 && state === 'sleeping',
        )
        await one.stop()
        const two = await engine({ runs: [run] })
        await two.signal('receiver', 'mail', 2)
        assert.deepEqual(
          await two.handle('receiver').result(),
          [1, 2].map((payload) => ({ kind: 'received', payload })),
        )
        await two.stop()
      },
    }),
  ],
  [
    'a signal is delivered once under its id, and the same id to another run is another signal',
    // DBOS dbos.test.ts `send-idempotency-key`, `send-idempotency-key-scoped-per-destination`; oaoo.test.ts `notification-oaoo`
    () => {
      const run = defineRun('counted', async (context) => [
        await context.waitFor<number>('n'),
        await context.waitFor<number>('n', { timeoutMs: HOUR }),
      ])
      return {
        runs: [run],
        async play({ start, signal }, { advance }) {
          const handles = [
            await start(run, { runId: 'counted 1', input: null }),
            await start(run, { runId: 'counted 2', input: null }),
          ]
          const sent = []
          for (const { runId } of handles) sent.push(await signal(runId, 'n', 1, { id: 'same' }))
          sent.push(await signal('counted 1', 'n', 1, { id: 'same' }))
          assert.deepEqual(sent, [true, true, false])
          for (const { runId, view } of handles)
            await until(`${runId} waits for another`, view, ({ steps }) => steps.length === 2)
          await advance(HOUR)
          for (const { result } of handles)
            assert.deepEqual(await result(), [{ kind: 'received', payload: 1 }, { kind: 'timed_out' }])
        },
      }
    },
  ],
  [
    'signals of two names are received by name, each name in the order of sending',
    // DBOS dbos.test.ts `simple-workflow-notifications`; Temporal test-workflows.ts `signalsOrdering`
    () => {
      const run = defineRun('topics', async (context) => {
        const names = ['b', 'a', 'b', 'a'] as const
        const found: unknown[] = []
        for (const name of names) {
          const received = await context.waitFor<number>(name)
          found.push(received.kind === 'received' ? [name, received.payload] : null)
        }
        return found
      })
      return {
        runs: [run],
        async play({ start, signal }) {
          const { result, runId } = await start(run, { runId: 'topics', input: null })
          for (const [name, n] of [
            ['a', 1],
            ['a', 2],
            ['b', 3],
            ['b', 4],
          ] as const)
            await signal(runId, name, n)
          assert.deepEqual(await result(), [
            ['b', 3],
            ['a', 1],
            ['b', 4],
            ['a', 2],
          ])
        },
      }
    },
  ],
  [
    'an error says when to try again, and the step waits for that',
    // Temporal test-integration-activities.ts `nextRetryDelay for activities`
    () => {
      const attempts: number[] = []
      const run = defineRun('told when', (context) =>
        context.step('try', ({ attemptNumber }) => {
          attempts.push(attemptNumber)
          if (attemptNumber === 1) throw notDone(new Error('busy'), { retryAfterMs: HOUR })
          return 'done'
        }),
      )
      return {
        runs: [run],
        async play(engine, { advance }) {
          const { result, view } = await engine.start(run, { runId: 'told when', input: null })
          await untilState(engine, 'told when', 'sleeping')
          const { dueAt, startedAt } = await view()
          assert.ok((dueAt ?? 0) >= startedAt + HOUR, `${dueAt} is an hour after ${startedAt}`)
          await advance(HOUR + MINUTE)
          assert.equal(await result(), 'done')
          assert.deepEqual(attempts, [1, 2])
        },
      }
    },
  ],
  [
    'a run polls until it finds what it waits for, asleep in between',
    // Inngest functions/polling
    () => {
      let polls = 0
      const run = defineRun('polling', async (context) => {
        for (let turn = 1; ; turn++) {
          if (await context.step('poll', () => ++polls === 3)) return turn
          await context.sleep('pause', HOUR)
        }
      })
      return {
        runs: [run],
        async play(engine, { advance }) {
          const { result, view } = await engine.start(run, { runId: 'polling', input: null })
          for (const turn of [1, 2]) {
            await until('it sleeps', view, ({ state, steps }) => state === 'sleeping' && steps.length === 2 * turn)
            await advance(HOUR)
          }
          assert.deepEqual([await result(), polls], [3, 3])
        },
      }
    },
  ],
  [
    'of timers the shorter one wins, and the longer one holds nothing up',
    // Temporal test-workflows.ts `promiseRace`, `trailingTimer`; Inngest functions/promise-race
    () => {
      const run = defineRun('timers', async (context) => {
        const { winner } = await context.race('first', {
          long: (branch) => branch.sleep('long', 30 * 24 * HOUR),
          short: (branch) => branch.sleep('short', MINUTE),
        })
        return winner
      })
      return {
        runs: [run],
        async play(engine, { advance }) {
          const { result, view } = await engine.start(run, { runId: 'timers', input: null })
          await untilState(engine, 'timers', 'sleeping')
          await advance(MINUTE)
          assert.equal(await result(), 'short')
          const left = (await view()).steps.find(({ id }) => id === 'first/long/long')
          assert.equal(left?.state, 'abandoned')
        },
      }
    },
  ],
  [
    'a signal races with time: it wins when it comes before, and the run continues without it when not',
    // Temporal test-workflows.ts `unblock - unblockOrCancel`, `conditionRacer`; DBOS dbos.test.ts `recv-timeout`
    () => {
      const run = defineRun('approval', async (context) => {
        const first = await context.race('decision', {
          approved: (branch) => branch.waitFor('approved'),
          late: (branch) => branch.sleep('late', HOUR),
        })
        const second = await context.waitFor('more', { timeoutMs: HOUR })
        return [first.winner, second.kind]
      })
      return {
        runs: [run],
        async play(engine, { advance }) {
          const waits = async (runId: string, kind: string) =>
            until(
              `${runId} waits`,
              () => engine.get(runId),
              ({ state, steps }) => state === 'sleeping' && steps.some((step) => step.id.endsWith(kind)),
            )
          const one = await engine.start(run, { runId: 'approval 1', input: null })
          const two = await engine.start(run, { runId: 'approval 2', input: null })
          await waits('approval 2', 'late')
          await engine.signal('approval 1', 'approved', null)
          await waits('approval 1', 'more')
          await advance(HOUR)
          await waits('approval 2', 'more')
          await engine.signal('approval 2', 'more', null)
          assert.deepEqual(await one.result(), ['approved', 'timed_out'])
          assert.deepEqual(await two.result(), ['late', 'received'])
        },
      }
    },
  ],
  [
    'a time that is no time is an error that the body may catch',
    // Temporal test-integration-split-two.ts `sleepInvalidDuration is caught in Workflow runtime`; DBOS step_timeout.test.ts `invalid-timeoutMS-is-rejected`
    () => {
      const run = defineRun('odd times', async (context) => {
        const codes: unknown[] = []
        const keep = (error: unknown) => codes.push(isOnceError(error) ? error.code : error)
        for (const ms of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
          await context.sleep('odd', ms).catch(keep)
          await context.step('odd', { timeoutMs: ms }, () => null).catch(keep)
          await context.waitFor('odd', { timeoutMs: ms }).catch(keep)
        }
        return codes
      })
      return {
        runs: [run],
        async play({ start }) {
          const codes = await (await start(run, { runId: 'odd times', input: null })).result()
          assert.deepEqual(codes, Array(9).fill('bad_option'))
        },
      }
    },
  ],
])
