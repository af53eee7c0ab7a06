import assert from 'node:assert/strict'
import type { Engine } from 'onceonly/run'
import { defineQueue, defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, type RunWorld, untilState, watched } from '../../support/runs/world.ts'

const MINUTES = 10 * 60_000

/** A process that has polled, and is woken by what is meant for it: not by time, nor, where there are topics, by any other change. */
async function idleEngine(world: RunWorld, options: Parameters<RunWorld['engine']>[0]): Promise<Engine> {
  let polls = 0
  const engine = await world.engine({ ...options, pollMs: MINUTES }, (store) => {
    const { sql } = watched(store, async (text, send) => {
      const rows = await send()
      // A poll looks for a place in queues last.
      if (text.startsWith(options.queues === undefined ? 'with clock' : 'select q.name')) polls += 1
      return rows
    })
    // On SQLite the commits of other processes have no topics.
    const hasTopics = sql.dialect.lock('for update') !== ''
    const listen: typeof sql.listen = (topic, wake) =>
      sql.listen(topic, (cause) => void ((cause === 'topic' || !hasTopics) && wake(cause)))
    return { ...store, sql: { ...sql, listen } }
  })
  await until('it has polled', async () => polls > 0)
  return engine
}

onEveryRunStore('a place of a queue that a draining process frees is taken at once', async (world) => {
  const [ends, drains] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const line = defineQueue('line', { concurrency: 1 })
  const first = defineRun('first', (run) => run.step('work', () => ends.promise))
  const beside = defineRun('beside', (run) => run.step('work', () => drains.promise))
  const second = defineRun('second', (run) => run.step('work', () => 'done'))
  const definitions = { runs: [first, beside, second], queues: [line] }
  const one = await world.engine(definitions)
  await one.enqueue(first, { queue: line, runId: 'first', input: null })
  await untilState(one, 'first', 'running')
  await one.start(beside, { runId: 'beside', input: null })
  await one.enqueue(second, { queue: line, runId: 'second', input: null })
  const two = await idleEngine(world, definitions)
  const stopping = one.stop()
  ends.resolve()
  assert.equal(await two.handle('second').result({ waitMs: 25_000 }), 'done')
  drains.resolve()
  await stopping
})

onEveryRunStore('a run that a draining process hands over is taken at once', async (world) => {
  const ends = Promise.withResolvers<void>()
  const run = defineRun('run', async (context) => {
    await context.step('first', () => ends.promise)
    return context.step('second', () => 'done')
  })
  const one = await world.engine({ runs: [run] })
  await one.start(run, { runId: 'r', input: null })
  const two = await idleEngine(world, { runs: [run] })
  const stopping = one.stop()
  ends.resolve()
  assert.equal(await two.handle('r').result({ waitMs: 25_000 }), 'done')
  await stopping
})
