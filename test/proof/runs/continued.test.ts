import assert from 'node:assert/strict'
import { defineQueue, defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const counter = defineRun('counter', async (run, given: { count: number; most: number }): Promise<number> => {
  const { count, most } = given
  await run.setAttributes({ count })
  if (count >= most) return count
  const added = await run.waitFor<number>('add')
  return run.continueAsNew({ count: count + (added.kind === 'received' ? added.payload : 0), most })
})

onEveryRunStore(
  'a run continues as new ones: signals and attributes go with it, and its callers get the last result',
  async (world) => {
    const { start, signal, get, list, replay } = await world.engine({ runs: [counter] })
    const handle = await start(counter, { runId: 'c', input: { count: 0, most: 6 } })
    // All of them go to the first run; those that it does not take go with it, or find it.
    for (const n of [1, 2, 3]) await signal('c', 'add', n, { id: `s${n}` })
    assert.equal(await handle.result(), 6)
    assert.equal(await signal('c', 'add', 1, { id: 's1' }), false, 'a signal is delivered once')
    const first = await get('c')
    assert.deepEqual([first.state, first.continuedAs, first.attributes], ['succeeded', 'c#2', { count: 0 }])
    assert.deepEqual((await list({})).runs.map(({ runId }) => runId).sort(), ['c', 'c#2', 'c#3', 'c#4'])
    assert.deepEqual((await get('c#4')).attributes, { count: 6 })
    assert.equal((await replay('c')).verdict, 'identical')
    assert.equal(await (await start(counter, { runId: 'c', input: { count: 0, most: 6 } })).result(), 6)
  },
)

onEveryRunStore('a parent waits for the last of the runs of its child, and cancels that one', async (world) => {
  const parent = defineRun('parent', (run, most: number) =>
    run.child(counter, { id: `child of ${run.runId}`, input: { count: 0, most } }),
  )
  const { start, signal, get, cancel } = await world.engine({ runs: [counter, parent] })
  const handle = await start(parent, { runId: 'p', input: 2 })
  const waits = (id: string) =>
    until(
      'it waits',
      () => get(id).catch(() => null),
      (view) => view?.steps.at(-1)?.kind === 'signal' && view.state === 'sleeping',
    )
  await waits('child of p')
  await signal('child of p', 'add', 1)
  await waits('child of p#2')
  await signal('child of p', 'add', 1)
  assert.equal(await handle.result(), 2)
  const other = await start(parent, { runId: 'q', input: 5 })
  await waits('child of q')
  await signal('child of q', 'add', 1)
  await waits('child of q#2')
  assert.equal(await cancel('q'), true)
  await assert.rejects(other.result(), { code: 'run_cancelled' })
  assert.equal((await get('child of q#2')).state, 'cancelled')
})

onEveryRunStore('a run of a queue continues in its place, which is one admission', async (world) => {
  const line = defineQueue('line', { concurrency: 1, perKey: 1, rate: { limit: 2, perMs: 3_600_000 } })
  const turns = defineRun('turns', async (run, left: number): Promise<string> => {
    await run.waitFor('go')
    return left > 0 ? run.continueAsNew(left - 1) : run.runId
  })
  const { enqueue, signal, get, queues } = await world.engine({ runs: [turns], queues: [line] })
  const waits = (id: string) =>
    until(
      `${id} waits`,
      () => get(id).catch(() => null),
      (view) => view?.state === 'sleeping',
    )
  const given = { queue: line, key: 'ann', dedupKey: 'order 7', priority: 3 }
  const a = await enqueue(turns, { ...given, runId: 'a', input: 2 })
  await waits('a')
  await enqueue(turns, { queue: line, runId: 'b', priority: 9, input: 0 })
  await enqueue(turns, { queue: line, runId: 'c', input: 0 })
  const { queue } = await get('a')
  for (const [before, after] of [
    ['a', 'a#2'],
    ['a#2', 'a#3'],
  ] as const) {
    await signal(before, 'go', null)
    await waits(after)
    assert.deepEqual((await get(after)).queue, queue)
    assert.equal((await enqueue(turns, { ...given, runId: 'twin', input: 0 })).runId, after)
    const [{ running, waiting } = assert.fail()] = await queues.list()
    assert.deepEqual([running, waiting], [1, 2])
  }
  await signal('a#3', 'go', null)
  assert.equal(await a.result(), 'a#3')
  // Two have begun within the hour, whatever the number of runs that continue the first.
  await waits('b')
  await signal('b', 'go', null)
  await world.advance(60_000)
  assert.equal((await get('c')).state, 'queued')
  await world.advance(3_600_000)
  await waits('c')
})

onEveryRunStore('continueAsNew inside of a branch is refused', async (world) => {
  const run = defineRun('r', (context) =>
    context.all('both', { a: (branch) => branch.continueAsNew(null), b: async () => null }),
  )
  const { start } = await world.engine({ runs: [run] })
  await assert.rejects((await start(run, { runId: 'r', input: null })).result(), /outside of branches/)
})
