import assert from 'node:assert/strict'
import type { Engine } from 'onceonly/run'
import { defineQueue, defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore, untilState } from '../../support/runs/world.ts'

const mail = defineQueue('mail')
const held = defineRun('held', async (run, way: 'waits' | 'fails') => {
  if (way === 'fails') throw new Error('it fails')
  await run.waitFor('go')
})

async function open(world: RunWorld) {
  const engine = await world.engine({ runs: [held], queues: [mail] })
  const put = (runId: string, input: 'waits' | 'fails', dedupKey = 'one') =>
    engine.enqueue(held, { queue: mail, runId, input, dedupKey })
  return { engine, put }
}

/** One run that failed, and one that was cancelled, both of one dedupKey. */
async function ended(engine: Engine, put: Awaited<ReturnType<typeof open>>['put']): Promise<void> {
  await put('failed', 'fails')
  await untilState(engine, 'failed', 'failed')
  await put('cancelled', 'waits')
  await untilState(engine, 'cancelled', 'sleeping')
  await engine.cancel('cancelled')
}

onEveryRunStore('a run whose dedupKey another run has is resumed only when that one has ended', async (world) => {
  const { engine, put } = await open(world)
  await ended(engine, put)
  await put('twin', 'waits')
  for (const runId of ['failed', 'cancelled']) {
    await assert.rejects(engine.resume(runId), { code: 'not_resolvable', message: /The run twin of one waits or runs/ })
  }
  await engine.cancel('twin')
  await engine.resume('cancelled')
  await untilState(engine, 'cancelled', 'sleeping')
  // It has the place of its dedupKey again.
  assert.equal((await put('another', 'waits')).runId, 'cancelled')
  await assert.rejects(engine.resume('twin'), /The run cancelled of one waits or runs/)
})

onEveryRunStore('a twin that takes the place of the dedupKey in the middle of a resume keeps it', async (world) => {
  const { engine, put } = await open(world)
  const store = world.store()
  // One writer has no middle.
  if (store.sql.dialect.lock('for update') === '') return
  await ended(engine, put)
  await put('twin', 'waits', 'two')
  await untilState(engine, 'twin', 'sleeping')
  const refused = await store.transactions.run(
    async ({ tx }) => {
      await tx.query("update onceonly_runs set dedup_key = 'one' where id = 'twin'")
      const resuming = assert.rejects(engine.resume('failed'), { code: 'not_resolvable' })
      await until('it waits for the twin', async () => {
        const [row] = await tx.query<{ waiting: unknown }>('select count(*) as waiting from pg_locks where not granted')
        return Number(row?.waiting) > 0
      })
      return { resuming }
    },
    { timeoutMs: 60_000, lockMs: 60_000, refuseTwinOf: null },
  )
  await refused.resuming
  assert.equal((await engine.get('failed')).state, 'failed')
})
