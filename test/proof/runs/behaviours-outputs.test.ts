import assert from 'node:assert/strict'
import { final, isOnceError } from 'onceonly'
import type { RunContext } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { behaviours, untilState } from '../../support/runs/world.ts'

/*
 * What the suites of DBOS Transact, Temporal's TypeScript SDK and Inngest check of forks, versions of the code,
 * events and attributes. The comment of each names its model: the file and the title of the test.
 */

const caught = (error: unknown) => (isOnceError(error) ? { code: error.code, details: error.details } : null)

behaviours([
  [
    'a fork takes over what was before its step: results, attributes, events, and children with their results',
    // DBOS workflow_management.test.ts `test-fork-steps`, `test-fork-childwf`, `test-fork-events`; attributes.test.ts `forked workflows inherit attributes`
    () => {
      const calls: string[] = []
      const leaf = defineRun('forked child', (context) => context.step('leaf', () => calls.push('leaf')))
      const run = defineRun('trunk', async (context) => {
        await context.setAttributes({ colour: 'green' })
        await context.emit('before', 1)
        await context.child(leaf, { input: null })
        await context.step('one', () => calls.push('one'))
        await context.emit('behind', 2)
        return context.step('two', () => calls.push('two'))
      })
      return {
        runs: [leaf, run],
        async play({ start, fork, handle, get, events }) {
          await (await start(run, { runId: 'trunk', input: null })).result()
          assert.deepEqual(calls, ['leaf', 'one', 'two'])
          await fork('trunk', { runId: 'twig', from: 'one' })
          assert.equal(await handle('twig').result(), 5)
          assert.deepEqual(calls.slice(3), ['one', 'two'])
          assert.deepEqual((await get('twig')).attributes, { colour: 'green' })
          const names = async (runId: string) => (await events(runId)).events.map(({ name }) => name)
          assert.deepEqual(await names('twig'), ['before', 'behind'])
        },
      }
    },
  ],
  [
    'a fork from the failed step of a run does what failed anew, with what was done before it',
    // DBOS workflow_management.test.ts `test-fork-from-failure`
    () => {
      let isBroken = true
      let calls = 0
      const run = defineRun('repaired', async (context) => {
        const n = await context.step('one', () => ++calls)
        return context.step('two', { retry: { attempts: 1 } }, () => {
          if (isBroken) throw final(new Error('broken'))
          return n
        })
      })
      return {
        runs: [run],
        async play({ start, fork, handle, get }) {
          await assert.rejects((await start(run, { runId: 'broken', input: null })).result(), { code: 'run_failed' })
          isBroken = false
          await fork('broken', { runId: 'mended', from: 'two' })
          assert.deepEqual([await handle('mended').result(), calls], [1, 1])
          assert.equal((await get('broken')).state, 'failed')
        },
      }
    },
  ],
  [
    'a change behind a version is for new runs; those that had passed the place stay on the old path',
    // DBOS patching.test.ts `patch-last-step`, `patch-first-step`; Temporal `patched`, `replay-no-marker-then-not-replay patchedWorkflow`, `deprecatePatchWorkflow`
    () => ({
      runs: [],
      async play(_, { engine }) {
        const coded = (age: 'old' | 'changed' | 'settled') =>
          defineRun('patched', async (context: RunContext) => {
            const isNew = age === 'settled' || (age === 'changed' && context.version('change'))
            const way = await context.step(isNew ? 'new way' : 'old way', () => (isNew ? 'new' : 'old'))
            await context.waitFor('go')
            const last = age !== 'old' && context.version('last') ? 'new' : 'old'
            return [way, last]
          })
        const first = coded('old')
        const one = await engine({ runs: [first] })
        await one.start(first, { runId: 'passed', input: null })
        await untilState(one, 'passed', 'sleeping')
        await one.stop()
        const changed = coded('changed')
        const two = await engine({ runs: [changed] })
        await two.start(changed, { runId: 'new', input: null })
        await untilState(two, 'new', 'sleeping')
        await two.signal('passed', 'go', null)
        assert.deepEqual(await two.handle('passed').result(), ['old', 'new'])
        await two.stop()
        // The question may go once no older run is left.
        const three = await engine({ runs: [coded('settled')] })
        await three.signal('new', 'go', null)
        assert.deepEqual(await three.handle('new').result(), ['new', 'new'])
        await three.stop()
      },
    }),
  ],
  [
    'a reader of events that waits hears of the end, also of a cancel, and an unknown run is an error',
    // DBOS streaming.test.ts `stream-termination-while-reader-blocked`, `read-stream-notices-cancellation`, `read-stream-nonexistent-workflow-raises`, `empty-stream`
    () => {
      const run = defineRun('source', async (context, count: number) => {
        for (let n = 0; n < count; n++) await context.emit('n', n)
        await context.waitFor('go')
      })
      return {
        runs: [run],
        async play({ start, cancel, signal, events }) {
          const values = async (runId: string, count: number) => {
            const found: unknown[] = []
            for await (const { value } of (await start(run, { runId, input: count })).events()) found.push(value)
            return found
          }
          const reading = [values('source 1', 2), values('source 2', 0)]
          for (const [runId, count] of [
            ['source 1', 2],
            ['source 2', 0],
          ] as const)
            await until(
              `${runId} waits`,
              async () => (await events(runId).catch(() => null))?.state === 'sleeping' && count >= 0,
            )
          await signal('source 1', 'go', null)
          await cancel('source 2')
          assert.deepEqual(await Promise.all(reading), [[0, 1], []])
          await assert.rejects(events('no such run'), { code: 'not_found' })
        },
      }
    },
  ],
  [
    'events of branches side by side, and of a run that was taken over, have places of their own and come once',
    // DBOS streaming.test.ts `concurrent-writes-to-one-key-take-distinct-offsets`, `workflow-recovery`, `stream-read-offset`
    () => ({
      runs: [],
      async play(_, { engine }) {
        const run = defineRun('emitters', async (context) => {
          const branch = (name: string) => async (inside: RunContext) => {
            for (const n of [1, 2, 3]) await inside.emit(name, n)
          }
          await context.all('side by side', { a: branch('a'), b: branch('b'), c: branch('c') })
          await context.waitFor('go')
          await context.emit('end', null)
        })
        const one = await engine({ runs: [run] })
        await one.start(run, { runId: 'emitters', input: null })
        await untilState(one, 'emitters', 'sleeping')
        const half = (await one.events('emitters', { limit: 5 })).cursor
        await one.stop()
        const two = await engine({ runs: [run] })
        await two.signal('emitters', 'go', null)
        await two.handle('emitters').result()
        const all = (await two.events('emitters')).events
        assert.equal(new Set(all.map(({ cursor }) => cursor)).size, 10)
        assert.deepEqual((await two.events('emitters', { after: half })).events, all.slice(5))
        for (const name of ['a', 'b', 'c'])
          assert.deepEqual(
            all.flatMap((event) => (event.name === name ? [event.value] : [])),
            [1, 2, 3],
          )
        await two.stop()
      },
    }),
  ],
  [
    'attributes that could not be found again are refused, and an error of the body',
    // DBOS attributes.test.ts `rejects invalid attributes`, `filters listWorkflows by attribute containment`
    () => {
      const run = defineRun('labelled', async (context) => {
        const refused: unknown[] = []
        for (const bad of [{ a: Number.NaN }, { a: {} }, { 'a/b': 1 }, { a: 'x'.repeat(10_000) }, [1]])
          await context.setAttributes(bad as never).catch((error: unknown) => refused.push(caught(error)?.code))
        await context.setAttributes({ good: 'yes', n: 1 })
        return refused
      })
      return {
        runs: [run],
        async play({ start, list }) {
          const refused = (await (await start(run, { runId: 'labelled', input: null })).result()) as unknown[]
          assert.deepEqual([refused.length, refused.includes(undefined)], [5, false])
          const ids = async (attributes: Record<string, string | number>) =>
            (await list({ attributes })).runs.map(({ runId }) => runId)
          assert.deepEqual(await ids({ good: 'yes', n: 1 }), ['labelled'])
          assert.deepEqual(await ids({ good: 'yes', n: 2 }), [])
        },
      }
    },
  ],
])
