import assert from 'node:assert/strict'
import { final, isOnceError, notDone } from 'onceonly'
import type { RunContext } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { behaviours, untilState } from '../../support/runs/world.ts'

/*
 * What the suites of DBOS Transact, Temporal's TypeScript SDK and Inngest check of steps, values and errors, as tests of
 * our own. The comment of each names its model: the file and the title of the test.
 */

const MINUTE = 60_000
const HOUR = 60 * MINUTE

behaviours([
  [
    'a run that is started again under its id is the same run, and its steps are not called again',
    // DBOS oaoo.test.ts `workflow-oaoo`, `step-oaoo`
    () => {
      let calls = 0
      const run = defineRun('same run', (context, n: number) => context.step('add', () => n + ++calls))
      return {
        runs: [run],
        async play({ start }) {
          const once = await (await start(run, { runId: 'same', input: 10 })).result()
          const again = await (await start(run, { runId: 'same', input: 10 })).result()
          assert.deepEqual([once, again, calls], [11, 11, 1])
        },
      }
    },
  ],
  [
    'a step whose attempts are used up fails the run, with the attempts in the error',
    // DBOS failures.test.ts `ordinary-error-exhausts-retried-runStep`; Temporal `activity-failure with Error`
    () => {
      const run = defineRun('exhausted', (context) =>
        context.step('try', { retry: { attempts: 3, baseMs: 0 } }, ({ attemptNumber }) => {
          throw notDone(new Error(`no ${attemptNumber}`))
        }),
      )
      return {
        runs: [run],
        async play({ start }) {
          const { result, view } = await start(run, { runId: 'exhausted', input: null })
          await assert.rejects(result(), (error) => isOnceError(error, 'run_failed') && /no 3/.test(error.message))
          const { steps, failure } = await view()
          assert.equal(failure?.code, 'step_failed')
          assert.deepEqual(
            steps[0]?.failures.map(({ message }) => message),
            ['no 1', 'no 2', 'no 3'],
          )
        },
      }
    },
  ],
  [
    'a final error ends the attempts at once',
    // DBOS failures.test.ts `shouldRetry-false-stops-retried-runStep`; Temporal `Workflow RetryPolicy ignored with nonRetryable failure`; Inngest engine.test.ts `NonRetriableError in step checkpoints as StepFailed with serialized error data`
    () => {
      let calls = 0
      const run = defineRun('final', (context) =>
        context.step('try', () => {
          calls += 1
          throw final(new Error('no such account'))
        }),
      )
      return {
        runs: [run],
        async play({ start }) {
          await assert.rejects((await start(run, { runId: 'final', input: null })).result(), /no such account/)
          assert.equal(calls, 1)
        },
      }
    },
  ],
  [
    'a step is tried until it succeeds, under one key',
    // DBOS failures.test.ts `shouldRetry-true-retries-until-success`; Temporal `Workflow RetryPolicy kicks in with retryable failure`
    () => {
      const keys: string[] = []
      const run = defineRun('stubborn', (context) =>
        context.step('try', { retry: { baseMs: 0 } }, ({ effectKey }) => {
          keys.push(effectKey)
          if (keys.length < 3) throw new Error('not yet')
          return 'done'
        }),
      )
      return {
        runs: [run],
        async play({ start }) {
          assert.equal(await (await start(run, { runId: 'stubborn', input: null })).result(), 'done')
          assert.deepEqual([keys.length, new Set(keys).size], [3, 1])
        },
      }
    },
  ],
  [
    'an attempt that takes too long gets its signal and is tried again, and what it returns later is ignored',
    // DBOS step_timeout.test.ts `timeout-attempt-is-retried-then-succeeds`, `uncooperative-zombie-resolution-is-discarded`
    () => {
      const late = Promise.withResolvers<string>()
      const run = defineRun('late', (context) =>
        context.step('slow', { timeoutMs: 1, retry: { baseMs: 0 } }, ({ attemptNumber }) =>
          attemptNumber === 1 ? late.promise : 'in time',
        ),
      )
      return {
        runs: [run],
        async play({ start, get }) {
          assert.equal(await (await start(run, { runId: 'late', input: null })).result(), 'in time')
          late.resolve('too late')
          await late.promise
          assert.deepEqual((await get('late')).steps[0]?.result, 'in time')
        },
      }
    },
  ],
  [
    'what a step threw reaches the body: its name, code, message and attempts',
    // Temporal test-integration-split-one.ts `activity-failure with ApplicationFailure`
    () => {
      const run = defineRun('caught', (context) =>
        context
          .step('pay', { retry: { attempts: 1 } }, () => {
            throw final(Object.assign(new RangeError('card declined'), { code: 'declined' }))
          })
          .catch((error: unknown) => (isOnceError(error, 'step_failed') ? error.details : null)),
      )
      return {
        runs: [run],
        async play({ start }) {
          const details = (await (await start(run, { runId: 'caught', input: null })).result()) as {
            readonly step: string
            readonly failures: readonly object[]
          }
          assert.equal(details.step, 'pay')
          const { name, code, message } = details.failures[0] as { name: string; code: string; message: string }
          assert.deepEqual({ name, code, message }, { name: 'RangeError', code: 'declined', message: 'card declined' })
        },
      }
    },
  ],
  [
    'a failed step that the body catches does not hold up the others, in line or beside it',
    // Inngest functions/handling-step-errors; DBOS concurrency.test.ts `promise-all-settled-manythings`
    () => {
      const broken = (context: RunContext, id: string) =>
        context.step(id, { retry: { attempts: 1 } }, () => {
          throw final(new Error(`${id} broke`))
        })
      const run = defineRun('settled', async (context) => {
        const a = await broken(context, 'a').catch(() => 'a failed')
        const b = await context.step('b', () => 'b')
        const both = await context.all('both', {
          c: (branch) => branch.step('c', () => 'c'),
          d: (branch) => broken(branch, 'd').catch(() => 'd failed'),
        })
        return [a, b, both]
      })
      return {
        runs: [run],
        async play({ start, replay }) {
          const result = await (await start(run, { runId: 'settled', input: null })).result()
          assert.deepEqual(result, ['a failed', 'b', { c: 'c', d: 'd failed' }])
          assert.equal((await replay('settled')).verdict, 'identical')
        },
      }
    },
  ],
  [
    'a step that fails ends the run before the next one begins',
    // Inngest functions/unhandled-step-errors; DBOS failures.test.ts `failing-step`
    () => {
      let began = false
      const run = defineRun('stopped', async (context) => {
        await context.step('a', () => {
          throw final(new Error('a broke'))
        })
        await context.step('b', () => {
          began = true
        })
      })
      return {
        runs: [run],
        async play({ start }) {
          const { result, view } = await start(run, { runId: 'stopped', input: null })
          await assert.rejects(result(), { code: 'run_failed' })
          assert.deepEqual([began, (await view()).steps.length], [false, 1])
        },
      }
    },
  ],
  [
    'what is thrown as no error at all still fails the run with its text',
    // Temporal test-integration-split-two.ts `throwObject includes message with our recommendation`, `throwBigInt …`
    () => {
      const run = defineRun('throws', async (_context, what: 'text' | 'number') => {
        throw what === 'text' ? 'just text' : 42n
      })
      return {
        runs: [run],
        async play({ start }) {
          await assert.rejects((await start(run, { runId: 'throws 1', input: 'text' })).result(), /just text/)
          await assert.rejects((await start(run, { runId: 'throws 2', input: 'number' })).result(), /42/)
        },
      }
    },
  ],
  [
    'nothing, dates and bytes come out of a step as they went in, before and after a restart',
    // Inngest functions/undefined-data, checkpointing/stepRunSerialization.test.ts; DBOS dbos.test.ts `return-void`
    () => ({
      runs: [],
      async play(_, { engine }) {
        const values = [undefined, null, new Date(7), new Uint8Array([1, 2]), 7n, [null]]
        const seen: unknown[] = []
        const run = defineRun('values', async (context) => {
          const found: unknown[] = []
          for (const value of values) found.push(await context.step('value', () => value))
          seen.push(found)
          await context.waitFor('go')
          return found
        })
        const one = await engine({ runs: [run] })
        await one.start(run, { runId: 'values', input: null })
        await untilState(one, 'values', 'sleeping')
        await one.stop()
        const two = await engine({ runs: [run] })
        await two.signal('values', 'go', null)
        const result = await two.handle('values').result()
        for (const each of [...seen, result]) assert.deepEqual(each, values)
        assert.ok(seen.length >= 2)
        await two.stop()
      },
    }),
  ],
  [
    'times, numbers and ids are other ones each time, and the same ones in a replay',
    // Temporal test-workflows.ts `random`, `date`; DBOS stepfuncs.test.ts `should generate uuid`, `Should get dates`
    () => {
      const run = defineRun('drawn', async (context) => {
        const before = [context.now(), context.random(), context.uuid(), context.random(), context.uuid()]
        await context.sleep('an hour', HOUR)
        return [...before, context.now()]
      })
      return {
        runs: [run],
        async play({ start, get, replay }, { advance }) {
          const { result } = await start(run, { runId: 'drawn', input: null })
          await until(
            'it sleeps',
            () => get('drawn'),
            ({ state }) => state === 'sleeping',
          )
          await advance(HOUR)
          const drawn = (await result()) as number[]
          assert.equal(new Set(drawn).size, drawn.length)
          assert.ok((drawn[5] ?? 0) - (drawn[0] ?? 0) >= HOUR, String(drawn))
          assert.equal((await replay('drawn')).verdict, 'identical')
        },
      }
    },
  ],
  [
    'branches run side by side, a loop and a step behind them come once each, also after a restart',
    // Inngest functions/parallel-reduce, functions/sequential-reduce, checkpointing/resumeAfterParallelism.test.ts
    () => ({
      runs: [],
      async play(_, { engine }) {
        const calls: string[] = []
        const score = (context: RunContext, team: string, value: number) =>
          context.step(`score of ${team}`, () => {
            calls.push(team)
            return value
          })
        const run = defineRun('scores', async (context) => {
          const both = await context.all('teams', {
            blue: (branch) => score(branch, 'blue', 50),
            red: (branch) => score(branch, 'red', 25),
          })
          let sum = both.blue + both.red
          for (const value of [1, 2, 3]) sum += await score(context, 'later', value)
          await context.waitFor('go')
          return context.step('total', () => sum)
        })
        const one = await engine({ runs: [run] })
        await one.start(run, { runId: 'scores', input: null })
        await untilState(one, 'scores', 'sleeping')
        await one.stop()
        const two = await engine({ runs: [run] })
        await two.signal('scores', 'go', null)
        assert.equal(await two.handle('scores').result(), 81)
        assert.deepEqual([...calls].sort(), ['blue', 'later', 'later', 'later', 'red'])
        await two.stop()
      },
    }),
  ],
  [
    'a body that takes another way than its record ends with both sides of the difference',
    // DBOS failures.test.ts `non-deterministic-workflow-step`; Temporal test-replay.ts `cancel-fake-progress-replay-nondeterministic`
    () => {
      let executions = 0
      const run = defineRun('wavering', async (context) => {
        executions += 1
        await context.step(executions === 1 ? 'left' : 'right', () => null)
        await context.waitFor('go')
      })
      return {
        runs: [run],
        async play(engine) {
          const { result, view } = await engine.start(run, { runId: 'wavering', input: null })
          await untilState(engine, 'wavering', 'sleeping')
          await engine.signal('wavering', 'go', null)
          await assert.rejects(result(), { code: 'run_failed' })
          const { failure } = await view()
          assert.equal(failure?.code, 'run_diverged')
          assert.match(failure?.message ?? '', /Where left was recorded, the run now comes to right/)
        },
      }
    },
  ],
])
