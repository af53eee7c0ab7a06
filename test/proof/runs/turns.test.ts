import assert from 'node:assert/strict'
import type { Engine } from 'onceonly/run'
import { defineQueue, defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const ids = (key: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${key}${from + index}`)

onEveryRunStore(
  'keys take turns, and one that comes later does not catch up on what it did not ask for',
  async (world) => {
    const begun: string[] = []
    const mail = defineQueue('mail', { concurrency: 1 })
    const held = defineRun('held', async (run) => {
      if (!begun.includes(run.runId)) begun.push(run.runId)
      await run.waitFor('go')
    })
    const engine = await world.engine({ runs: [held], queues: [mail] })
    const enqueue = async (list: readonly string[]) => {
      for (const runId of list) await engine.enqueue(held, { queue: mail, key: runId.slice(0, 1), runId, input: null })
    }
    const finishUntil = async (by: Engine, count: number) => {
      for (;;) {
        const last = await until('one has begun', () => begun.at(-1))
        if (begun.length >= count) return
        await by.signal(last, 'go', null)
        await until('the next one has begun', () => begun.at(-1) !== last)
      }
    }
    await engine.queues.pause('mail')
    // A tenant with many runs, and one with few that came behind all of them.
    await enqueue(ids('a', 1, 8))
    await enqueue(ids('b', 1, 2))
    await engine.queues.resume('mail')
    await finishUntil(engine, 5)
    assert.deepEqual(begun, ['a1', 'b1', 'a2', 'b2', 'a3'])
    // It begins beside what waits now: as if it had taken its turns, however many there were.
    await enqueue(ids('c', 1, 4))
    await finishUntil(engine, 12)
    assert.deepEqual(begun.slice(5), ['a4', 'c1', 'a5', 'c2', 'a6', 'c3', 'a7'])
  },
)
