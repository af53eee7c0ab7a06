import assert from 'node:assert/strict'
import type { SqlStore } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

/** Holds the answers of a store from `close` to `open`. */
function gate() {
  let held: PromiseWithResolvers<void> | null = null
  return {
    close: () => void (held ??= Promise.withResolvers()),
    open() {
      held?.resolve()
      held = null
    },
    pass: () => held?.promise,
  }
}

onEveryRunStore(
  'a loser that was waiting for the time writes nothing behind the decision of its race',
  async (world) => {
    const { close, open, pass } = gate()
    const slow = (store: SqlStore): SqlStore => ({
      ...store,
      clock: {
        ...store.clock,
        async now(call) {
          await pass()
          return store.clock.now(call)
        },
      },
    })
    const run = defineRun('r', async (context) => {
      // A value before the race gives it a line that is older than its decision.
      context.now()
      const { winner } = await context.race('first', {
        a: async (branch) => {
          await branch.step('one', () => 1)
          return branch.step('two', () => 2)
        },
        b: async (branch) => {
          close()
          await branch.sleep('b', HOUR)
        },
        c: async (branch) => branch.waitFor('never', { timeoutMs: HOUR }),
      })
      await context.step('decided', () => open())
      await context.step('next', () => null)
      return [winner, await context.step('last', () => 'done')]
    })
    const { start, fork, get, handle } = await world.engine({ runs: [run] }, slow)
    assert.deepEqual(await (await start(run, { runId: 'one', input: null })).result(), ['a', 'done'])
    const losers = (await get('one')).steps.filter(({ id }) => id.startsWith('first/b') || id.startsWith('first/c'))
    assert.deepEqual(
      losers.filter(({ state }) => state !== 'abandoned'),
      [],
    )
    await fork('one', { runId: 'two', from: 'last' })
    assert.deepEqual(await handle('two').result(), ['a', 'done'])
  },
)

onEveryRunStore('a child whose start is answered after its branch has lost is cancelled', async (world) => {
  const { close, open, pass } = gate()
  let started = Promise.withResolvers<void>()
  const slow = (store: SqlStore): SqlStore => ({
    ...store,
    sql: {
      ...store.sql,
      async script(begin) {
        const answer = await store.sql.script(begin)
        if (answer === 'started') {
          started.resolve()
          await pass()
        }
        return answer
      },
    },
  })
  const nap = defineRun('nap', (context) => context.sleep('nap', HOUR))
  const run = defineRun('r', async (context) => {
    const { winner } = await context.race('first', {
      a: (branch) => branch.step('one', () => started.promise),
      b: async (branch) => {
        close()
        await branch.child(nap, { input: null })
      },
    })
    await context.step('decided', { retry: { attempts: 1 } }, () => {
      open()
      return until(
        'the child is abandoned',
        () => get(context.runId),
        ({ steps }) => steps.some(({ kind, state }) => kind === 'child' && state === 'abandoned'),
      ).then(() => null)
    })
    return [winner, 'done']
  })
  const { start, get, handle } = await world.engine({ runs: [run, nap] }, slow)
  for (const runId of ['one', 'two']) {
    started = Promise.withResolvers()
    assert.deepEqual(await (await start(run, { runId, input: null })).result(), ['a', 'done'])
    const left = (await get(runId)).steps.find(({ kind }) => kind === 'child')
    await assert.rejects(handle(left?.child ?? '').result(), { code: 'run_cancelled' })
  }
})
