import assert from 'node:assert/strict'
import type { Verified } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import type { Entry } from '../../../src/runs/entry.ts'
import { createPuts } from '../../../src/runs/puts.ts'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const MINUTE = 60_000
/** The next heartbeat, by which a worker notices a lost run, is minutes away. */
const unknowing = { leaseMs: 20 * MINUTE }

const blank: Omit<Entry, 'key'> = {
  position: 0,
  branch: '',
  stepId: 'act',
  tick: 0,
  kind: 'step',
  state: 'succeeded',
  attempts: 1,
  dueAt: null,
  fingerprint: null,
  plan: null,
  result: null,
  failures: [],
  values: [],
  at: 0,
  leadsTo: null,
}

onEveryRunStore(
  'a worker that has not noticed the loss of its runs writes nothing, neither one step nor many',
  async (world) => {
    for (const count of [1, 3]) {
      const ids = Array.from({ length: count }, (_, index) => `${count} ${index}`)
      const released = Promise.withResolvers<string>()
      let begun = 0
      const slow = defineRun('slow', (run) =>
        run.step('act', () => {
          begun += 1
          return released.promise
        }),
      )
      // It has no capacity to take the lost runs again.
      const first = await world.engine({ runs: [slow], concurrency: count, ...unknowing })
      await Promise.all(ids.map((runId) => first.start(slow, { runId, input: null })))
      await until(
        `${count} acts have begun`,
        async () => begun,
        (acts) => acts === count,
      )
      // As if its lease were over by the clock of the store alone.
      await world.store().sql.query(`update onceonly_runs set worker = null, fence = fence + 1, due_at = 0
      where ended_at is null`)
      const second = await world.engine({ runs: [defineRun('slow', (run) => run.step('act', () => 'in time'))] })
      for (const runId of ids) assert.equal(await second.handle(runId).result({ waitMs: 120_000 }), 'in time')
      const before = await Promise.all(ids.map((runId) => second.get(runId)))
      const lost = () => world.events.filter((event) => event.kind === 'lost' && ids.includes(event.runId)).length
      released.resolve('late')
      await until(
        `${count} workers have reported the lost run`,
        async () => lost(),
        (seen) => seen === count,
      )
      assert.deepEqual(await Promise.all(ids.map((runId) => second.get(runId))), before)
      await Promise.all([first.stop(), second.stop()])
    }
  },
)

onEveryRunStore('a process that lost a run and has it again writes for its newer hold alone', async (world) => {
  const one = defineRun('one', (run) => run.step('act', () => 'done'))
  const starter = await world.engine({ runs: [one], work: false })
  const { sql } = world.store()
  const puts = createPuts(sql, () => {})
  const put = (runId: string, fence: number) => ({
    holder: { runId, fence },
    entry: { ...blank, key: 'k', result: JSON.stringify(fence) },
  })
  for (const [runId, fences] of [
    ['in order', [1, 2]],
    ['turned', [2, 1]],
  ] as const) {
    await starter.start(one, { runId, input: null })
    await sql.query('update onceonly_runs set fence = 2 where id = ?', [runId])
    // Both come with one flush, as after a pause.
    const written = await puts.putAll(fences.map((fence) => put(runId, fence)))
    assert.deepEqual(
      written,
      fences.map((fence) => fence === 2),
      runId,
    )
    assert.deepEqual(await sql.query('select result from onceonly_run_steps where run_id = ?', [runId]), [
      { result: '2' },
    ])
  }
})

onEveryRunStore('a worker that has not noticed the loss of a run does not end it for the new worker', async (world) => {
  const [late, inTime] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const begun: string[] = []
  // It writes nothing on its way, so that it can notice the loss only at its end.
  const waiting = (who: string, answer: Promise<string>) =>
    defineRun('waiting', () => {
      begun.push(who)
      return answer
    })
  const mine = waiting('first', late.promise)
  const first = await world.engine({ runs: [mine], concurrency: 1, ...unknowing })
  await first.start(mine, { runId: 'w', input: null })
  const untilBegun = (who: string) =>
    until(
      `${who} has begun`,
      async () => begun,
      (seen) => seen.includes(who),
    )
  await untilBegun('first')
  await world.store().sql.query(`update onceonly_runs set worker = null, fence = fence + 1, due_at = 0`)
  const second = await world.engine({ runs: [waiting('second', inTime.promise)] })
  await untilBegun('second')
  late.resolve('late')
  await until(
    'a worker reports that it lost or left the run',
    async () => world.events.map(({ kind }) => kind),
    (kinds) => kinds.includes('lost') || kinds.includes('left'),
  )
  assert.equal((await second.get('w'))?.state, 'running')
  inTime.resolve('in time')
  assert.equal(await second.handle('w').result({ waitMs: 120_000 }), 'in time')
})

onEveryRunStore(
  'a worker that has not noticed the loss of a run resolves no unknown step for the new worker',
  async (world) => {
    const [late, inTime] = [Promise.withResolvers<Verified<string>>(), Promise.withResolvers<Verified<string>>()]
    const probing: string[] = []
    const asking = (who: string, answers: readonly Promise<Verified<string>>[]) => {
      const left = [...answers]
      const verify = async () => {
        probing.push(who)
        return (await left.shift()) ?? { kind: 'unknown' as const }
      }
      return defineRun('asking', (run) =>
        run.step('post', { semantics: 'verify', verify }, (): string => {
          throw new Error('the line went dead')
        }),
      )
    }
    const untilProbed = (times: number) =>
      until(
        `the provider was asked ${times} times`,
        async () => probing,
        (seen) => seen.length === times,
      )
    const mine = asking('first', [Promise.resolve({ kind: 'unknown' }), late.promise])
    const first = await world.engine({ runs: [mine], concurrency: 1, ...unknowing })
    const handle = await first.start(mine, { runId: 'a', input: null })
    await until('an outcome of the run is unknown', handle.view, ({ state }) => state === 'unknown')
    await world.advance(MINUTE)
    await untilProbed(2)
    await world.store().sql.query(`update onceonly_runs set worker = null, fence = fence + 1, due_at = 0`)
    const second = await world.engine({ runs: [asking('second', [inTime.promise])] })
    await untilProbed(3)
    late.resolve({ kind: 'done', result: 'late' })
    await until(
      'a worker reports that it lost the run',
      async () => world.events.map(({ kind }) => kind),
      (kinds) => kinds.includes('lost'),
    )
    assert.deepEqual(probing, ['first', 'first', 'second'])
    assert.equal((await second.get('a')).steps[0]?.state, 'unknown')
    inTime.resolve({ kind: 'done', result: 'in time' })
    assert.equal(await second.handle('a').result({ waitMs: 120_000 }), 'in time')
  },
)
