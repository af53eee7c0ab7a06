import assert from 'node:assert/strict'
import { final, isOnceError } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { limits } from '../../../src/ledger/core/limits.ts'
import type { Failure } from '../../../src/ledger/core/verdict.ts'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

onEveryRunStore('what a branch asked for before it threw is recorded', async (world) => {
  const throws = defineRun('throws', async (run) => {
    const branches = {
      left: async (branch: typeof run) => {
        await branch.step('act', () => 1)
        throw new Error(branch.uuid())
      },
    }
    const one = await run.all('both', branches).then(String, (error: Error) => error.message)
    const two = await run.race('first', branches).then(String, (error: Error) => error.message)
    await run.step('report', { input: [one, two] }, () => null)
    await run.sleep('pause', HOUR)
    await run.step('report again', { input: [one, two] }, () => null)
    throw new Error(`${one} ${two} ${run.uuid()}`)
  })
  for (const checkDeterminism of [false, true]) {
    const runId = `checked ${checkDeterminism}`
    const engine = await world.engine({ runs: [throws], checkDeterminism })
    const { view } = await engine.start(throws, { runId, input: null })
    await until('the run sleeps', view, ({ state, steps }) => state === 'sleeping' && steps.at(-1)?.kind === 'sleep')
    await world.advance(HOUR)
    const { failure, steps } = await until('the run has failed', view, ({ state }) => state === 'failed')
    assert.equal(failure?.code, undefined, failure?.message)
    assert.equal(failure?.message.split(' ').length, 3)
    assert.deepEqual(
      steps.filter(({ kind }) => kind === 'end'),
      [],
    )
    const { verdict, result } = await engine.replay(runId)
    assert.deepEqual([verdict, result.identical], ['identical', true])
    await engine.stop()
  }
})

onEveryRunStore('a run that asked for something before it failed can be resumed', async (world) => {
  let isFixed = false
  const fails = defineRun('fails', async (run) => {
    const branch = async (below: typeof run) => {
      try {
        return await below.step('act', () => (isFixed ? 'done' : Promise.reject(final(new Error('no')))))
      } catch {
        throw new Error(`failed at ${below.now()}`)
      }
    }
    try {
      return await run.all('both', { left: branch, right: branch })
    } catch (error) {
      throw new Error(`${run.uuid()} ${String(error)}`)
    }
  })
  const engine = await world.engine({ runs: [fails] })
  const handle = await engine.start(fails, { runId: 'f', input: null })
  await assert.rejects(handle.result({ waitMs: 120_000 }), (error) => isOnceError(error, 'run_failed'))
  isFixed = true
  await engine.resume('f')
  assert.deepEqual(await handle.result({ waitMs: 120_000 }), { left: 'done', right: 'done' })
  assert.equal((await engine.replay('f')).verdict, 'identical')
})

onEveryRunStore('a run whose journal was full was reported before, and replays as it went', async (world) => {
  const text = 'x'.repeat(limits.runResultChars - 2)
  const steps = limits.runJournalChars / limits.runResultChars
  const long = defineRun('long', async (run) => {
    for (let turn = 0; turn < steps; turn++) await run.step('fill', () => text)
    await run.all('both', {
      left: (branch) => branch.step('more', () => 1),
      right: (branch) => branch.sleep('pause', HOUR),
    })
  })
  const engine = await world.engine({ runs: [long] })
  const handle = await engine.start(long, { runId: 'l', input: null })
  const ended = await handle.result({ waitMs: 120_000 }).catch((error: unknown) => error)
  assert.ok(isOnceError(ended, 'run_failed'))
  assert.equal((ended.details['failure'] as Failure).code, 'run_too_long')
  // It was reported when it became so, and not again.
  const filling = world.events.flatMap((event) => (event.kind === 'journal_filling' ? [event.lines] : []))
  assert.deepEqual(filling, [Math.ceil(steps * limits.runFullShare)])
  const { verdict, result } = await engine.replay('l')
  assert.deepEqual([verdict, result.identical], ['identical', true])
})
