import assert from 'node:assert/strict'
import { final, isOnceError } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { behaviours, untilState } from '../../support/runs/world.ts'

/*
 * What the suites of DBOS Transact, Temporal's TypeScript SDK and Inngest check of whole runs: children, cancels, resumes,
 * timeouts, ids. The comment of each names its model: the file and the title of the test.
 */

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const caught = (error: unknown) => (isOnceError(error) ? { code: error.code, details: error.details } : null)

behaviours([
  [
    'the result of a child comes back, and so does its error with its text',
    // Temporal test-integration-split-one.ts `child-workflow-invoke`, `child-workflow-failure`; Inngest functions/step-invoke
    () => {
      const leaf = defineRun('invoked', async (_run, n: number) => {
        if (n < 0) throw new RangeError('below zero')
        return n * 2
      })
      const run = defineRun('invoking', async (context) => {
        const doubled = await context.child(leaf, { input: 21 })
        const failed = await context.child(leaf, { input: -1 }).catch((error: unknown) => (error as Error).message)
        return [doubled, failed]
      })
      return {
        runs: [leaf, run],
        async play({ start }) {
          const [doubled, failed] = (await (await start(run, { runId: 'invoking', input: null })).result()) as unknown[]
          assert.equal(doubled, 42)
          assert.match(String(failed), /invoking~invoked,2 failed: below zero/)
        },
      }
    },
  ],
  [
    'a child that takes too long fails with that reason, and its parent continues',
    // Temporal `child-workflow-timeout`; DBOS dbos.test.ts `child-wf-timeout-before-parent`
    () => {
      const leaf = defineRun('slow child', (context) => context.sleep('long', HOUR), { timeoutMs: MINUTE })
      const run = defineRun('patient', (context) => context.child(leaf, { input: null }).catch(caught))
      return {
        runs: [leaf, run],
        async play(engine, { advance }) {
          const { result } = await engine.start(run, { runId: 'patient', input: null })
          await untilState(engine, 'patient~slow child', 'sleeping')
          await advance(MINUTE)
          const { code, details } = (await result()) as { code: string; details: { failure: { code: string } } }
          assert.deepEqual([code, details.failure.code], ['child_failed', 'run_timed_out'])
        },
      }
    },
  ],
  [
    'a parent that takes too long takes its children with it, but not those that are to continue',
    // DBOS dbos.test.ts `child-wf-timeout-after-parent`, `child-wf-detach-deadline`
    () => {
      const leaf = defineRun('outlived', (context) => context.sleep('long', HOUR))
      const run = defineRun(
        'hasty',
        (context) =>
          context.all('both', {
            bound: (branch) => branch.child(leaf, { input: null }),
            free: (branch) => branch.child(leaf, { input: null, ifParentEnds: 'continue' }),
          }),
        { timeoutMs: MINUTE },
      )
      return {
        runs: [leaf, run],
        async play(engine, { advance }) {
          const { result } = await engine.start(run, { runId: 'hasty', input: null })
          for (const name of ['bound', 'free']) await untilState(engine, `hasty~both/${name}/outlived`, 'sleeping')
          await advance(MINUTE)
          await assert.rejects(result(), { code: 'run_timed_out' })
          await untilState(engine, 'hasty~both/bound/outlived', 'cancelled')
          assert.equal((await engine.get('hasty~both/free/outlived')).state, 'sleeping')
        },
      }
    },
  ],
  [
    'a child that an operator cancels is an error that names it',
    // Temporal `child-workflow-termination`
    () => {
      const leaf = defineRun('ended child', (context) => context.waitFor('never'))
      const run = defineRun('informed', (context) => context.child(leaf, { input: null }).catch(caught))
      return {
        runs: [leaf, run],
        async play(engine) {
          const { result } = await engine.start(run, { runId: 'informed', input: null })
          await untilState(engine, 'informed~ended child', 'sleeping')
          await engine.cancel('informed~ended child')
          assert.deepEqual(await result(), {
            code: 'child_failed',
            details: { step: 'ended child', tick: 0, runId: 'informed~ended child', state: 'cancelled' },
          })
        },
      }
    },
  ],
  [
    'a parent that was cancelled beside its child has the result of the child after a resume',
    // DBOS workflow_management.test.ts `parent picks up child result after resume`
    () => {
      let calls = 0
      const leaf = defineRun('kept child', async (context) => {
        await context.waitFor('go')
        return context.step('count', () => ++calls)
      })
      const run = defineRun('resumed', (context) => context.child(leaf, { input: null, ifParentEnds: 'continue' }))
      return {
        runs: [leaf, run],
        async play(engine) {
          const { result } = await engine.start(run, { runId: 'resumed', input: null })
          await untilState(engine, 'resumed~kept child', 'sleeping')
          await engine.cancel('resumed')
          await engine.signal('resumed~kept child', 'go', null)
          await untilState(engine, 'resumed~kept child', 'succeeded')
          await engine.resume('resumed')
          assert.deepEqual([await result(), calls], [1, 1])
        },
      }
    },
  ],
  [
    'a run that is cancelled between two steps and resumed does each of them once',
    // DBOS workflow_management.test.ts `test-two-steps-cancel-resume`
    () => {
      const done: string[] = []
      const run = defineRun('twice', async (context) => {
        await context.step('one', () => done.push('one'))
        await context.waitFor('go')
        await context.step('two', () => done.push('two'))
      })
      return {
        runs: [run],
        async play(engine) {
          const { result } = await engine.start(run, { runId: 'twice', input: null })
          await untilState(engine, 'twice', 'sleeping')
          await engine.cancel('twice')
          await engine.resume('twice')
          await engine.signal('twice', 'go', null)
          await result()
          assert.deepEqual(done, ['one', 'two'])
        },
      }
    },
  ],
  [
    'a run that has ended cannot be cancelled or resumed, and keeps its result',
    // DBOS workflow_management.test.ts `test-cancel-after-completion`, `test-resume-on-a-completed-ws`; Temporal `tryToContinueAfterCompletion`
    () => {
      const run = defineRun('over', async () => 'result')
      return {
        runs: [run],
        async play({ start, cancel, resume, signal }) {
          const { result } = await start(run, { runId: 'over', input: null })
          await result()
          assert.equal(await cancel('over'), false)
          await assert.rejects(resume('over'), { code: 'not_resolvable' })
          await assert.rejects(signal('over', 'late', null), { code: 'not_found' })
          assert.equal(await result(), 'result')
        },
      }
    },
  ],
  [
    'callers that wait for a run hear of its cancel, from this process and another one',
    // DBOS workflow_management.test.ts `test-preempt-getresult`, `test-preempt-recv`; Temporal `WorkflowHandle.result() throws if terminated`
    () => {
      const run = defineRun('awaited', (context) => context.waitFor('never'))
      return {
        runs: [run],
        async play(engine, world) {
          const other = await world.engine({ runs: [], work: false })
          const { result } = await engine.start(run, { runId: 'awaited', input: null })
          const waiting = [result(), other.handle('awaited').result()].map((each) =>
            assert.rejects(each, { code: 'run_cancelled' }),
          )
          await engine.cancel('awaited')
          await Promise.all(waiting)
          await other.stop()
        },
      }
    },
  ],
  [
    'a clean-up of a cancelled run is not cut by another cancel, and when it fails, so does the run',
    // Temporal test-workflows.ts `nonCancellable`, test-workflow-cancellation.ts `fail after-cleanup`
    () => {
      let cleaned = 0
      const run = defineRun('shielded', async (context, fails: boolean) => {
        await context.onCancel('tidy', async (cleanUp) => {
          await cleanUp.waitFor('tidied')
          await cleanUp.step('count', () => {
            if (fails) throw final(new Error('cannot tidy'))
            cleaned += 1
          })
        })
        await context.waitFor('never')
      })
      return {
        runs: [run],
        async play(engine) {
          for (const fails of [false, true]) {
            const runId = `shielded ${fails}`
            const { result, view } = await engine.start(run, { runId, input: fails })
            await untilState(engine, runId, 'sleeping')
            assert.equal(await engine.cancel(runId), true)
            await until('its clean-up waits', view, ({ steps }) => steps.at(-1)?.branch.startsWith('$cancel') === true)
            assert.equal(await engine.cancel(runId), false)
            await engine.signal(runId, 'tidied', null)
            await assert.rejects(result(), { code: fails ? 'run_failed' : 'run_cancelled' })
          }
          assert.equal(cleaned, 1)
        },
      }
    },
  ],
  [
    'a deadline of the run comes before that of its step, asleep or not, and none comes after its end',
    // DBOS step_timeout.test.ts `workflow-deadline-wins-over-step-timeout`, dbos.test.ts `sleeping-workflow-timed-out`, `sleeping-workflow-not-timed-out`
    () => {
      const run = defineRun(
        'deadline',
        async (context, ms: number) => {
          await context.sleep('rest', ms)
          return 'rested'
        },
        { timeoutMs: MINUTE },
      )
      const stuck = defineRun(
        'stuck step',
        (context) => context.step('hang', { timeoutMs: HOUR }, () => new Promise<void>(() => {})),
        { timeoutMs: MINUTE },
      )
      return {
        runs: [run, stuck],
        async play(engine, { advance }) {
          const quick = await engine.start(run, { runId: 'deadline 1', input: MINUTE / 2 })
          const slow = await engine.start(run, { runId: 'deadline 2', input: HOUR })
          const hung = await engine.start(stuck, { runId: 'deadline 3', input: null })
          for (const { runId } of [quick, slow]) await untilState(engine, runId, 'sleeping')
          await advance(MINUTE / 2)
          assert.equal(await quick.result(), 'rested')
          await advance(MINUTE / 2)
          for (const { result } of [slow, hung]) await assert.rejects(result(), { code: 'run_timed_out' })
          assert.equal(await quick.result(), 'rested')
        },
      }
    },
  ],
  [
    'a run id means one run: the same, a refusal or the next one, as the caller wants, and never another input',
    // Temporal test-integration-workflow-start.ts `Start of workflow respects workflow id conflict policy`, `WorkflowClient.start fails with WorkflowExecutionAlreadyStartedError`
    () => {
      let calls = 0
      const run = defineRun('one id', (context, what: string) => context.step('count', { input: what }, () => ++calls))
      return {
        runs: [run],
        async play({ start }) {
          const again = async (input: string, ifFinished?: 'return' | 'reject' | 'restart') => {
            const { result, runId } = await start(run, { runId: 'id', input, ...(ifFinished && { ifFinished }) })
            return [runId, await result()]
          }
          assert.deepEqual(await again('a'), ['id', 1])
          assert.deepEqual(await again('a', 'return'), ['id', 1])
          await assert.rejects(again('a', 'reject'), { code: 'run_conflict' })
          await assert.rejects(again('b', 'restart'), { code: 'run_conflict' })
          assert.deepEqual(await again('a', 'restart'), ['id#2', 2])
        },
      }
    },
  ],
  [
    'a cancel of a run that has continued as a new one ends the new one, and its callers hear of it',
    // Temporal `Handle from WorkflowClient.start terminates run after continue as new`, `WorkflowHandle.result() follows chain of execution`
    () => {
      const run = defineRun('chain', async (context, n: number): Promise<null> => {
        if (n < 2) return context.continueAsNew(n + 1)
        await context.waitFor('never')
        return null
      })
      return {
        runs: [run],
        async play(engine) {
          const { result } = await engine.start(run, { runId: 'chain', input: 0 })
          await untilState(engine, 'chain#3', 'sleeping')
          assert.equal(await engine.cancel('chain'), true)
          await assert.rejects(result(), { code: 'run_cancelled' })
          assert.deepEqual(
            [(await engine.get('chain')).state, (await engine.get('chain#3')).state],
            ['succeeded', 'cancelled'],
          )
        },
      }
    },
  ],
])
