import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import type { Engine, Queue, QueueView, RunContext } from 'onceonly/run'
import { defineQueue, defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, type RunWorld } from '../../support/runs/world.ts'

/** Runs until it is let go. */
const held = defineRun('held', async (run: RunContext) => {
  await run.waitFor('go')
  return run.runId
})

async function open(world: RunWorld, queue: Queue): Promise<Engine> {
  return world.engine({ runs: [held], queues: [queue] })
}

async function viewOf(engine: Engine, name: string): Promise<QueueView> {
  return (await engine.queues.list()).find((each) => each.name === name) ?? assert.fail(`no queue ${name}`)
}

/** The runs that have begun, in that order. */
async function begun(engine: Engine): Promise<string[]> {
  const { runs } = await engine.list({ queue: 'mail' })
  const inOrder = runs.flatMap(({ runId, queue }) =>
    queue?.admittedAt === null || queue === null ? [] : [{ runId, at: queue.admittedAt }],
  )
  return inOrder.toSorted((a, b) => a.at - b.at).map(({ runId }) => runId)
}

const untilBegun = (engine: Engine, ids: readonly string[]) =>
  until(
    `${ids.join(', ')} have begun`,
    () => begun(engine),
    (found) => ids.every((id) => found.includes(id)),
  )

async function finish(engine: Engine, runId: string): Promise<void> {
  await engine.signal(runId, 'go', null)
  assert.equal(await engine.handle(runId).result({ waitMs: 120_000 }), runId)
}

onEveryRunStore('places are limited over all processes, in all and by key, and keys take turns', async (world) => {
  const mail = defineQueue('mail', { concurrency: 3, perKey: 2 })
  const one = await open(world, mail)
  const two = await open(world, mail)
  const [a, b, c] = [1, 2, 3].map((n) => `a${n}`) as [string, string, string]
  await one.queues.pause('mail')
  for (const runId of [a, b, c, 'a4']) await one.enqueue(held, { queue: mail, key: 'a', runId, input: null })
  await two.enqueue(held, { queue: 'mail', key: 'b', runId: 'b1', input: null })
  await one.queues.resume('mail')
  await untilBegun(one, [a, b, 'b1'])
  assert.equal((await one.get(c)).state, 'queued')
  await until(
    'the others have no place',
    () => viewOf(one, 'mail'),
    ({ running }) => running === 3,
  )
  await finish(two, 'b1')
  // A place in the queue is free, and none of the key.
  await two.enqueue(held, { queue: mail, key: 'b', runId: 'b2', input: null })
  await untilBegun(one, ['b2'])
  assert.equal((await one.get(c)).state, 'queued')
  await finish(one, a)
  await untilBegun(one, [c])
  assert.equal((await viewOf(two, 'mail')).running, 3)
})

onEveryRunStore('a rate counts every span, and continues by itself', async (world) => {
  const mail = defineQueue('mail', { rate: { limit: 2, perMs: 60_000 } })
  const engine = await open(world, mail)
  for (const runId of ['1', '2', '3']) await engine.enqueue(held, { queue: mail, runId, input: null })
  await untilBegun(engine, ['1', '2'])
  await world.advance(30_000)
  assert.equal((await engine.get('3')).state, 'queued')
  await world.advance(30_000)
  await untilBegun(engine, ['3'])
})

onEveryRunStore('priority comes first, a delay holds back, and one run waits or runs for a dedupKey', async (world) => {
  const mail = defineQueue('mail', { concurrency: 1, priority: 1 })
  const engine = await open(world, mail)
  const put = (runId: string, more: object = {}) => engine.enqueue(held, { queue: mail, runId, input: null, ...more })
  await put('first', { dedupKey: 'order 7' })
  await untilBegun(engine, ['first'])
  assert.equal((await put('again', { dedupKey: 'order 7' })).runId, 'first')
  await put('usual')
  await put('low', { priority: 0 })
  await put('urgent', { priority: 2 })
  await put('later', { priority: 3, delayMs: 60_000 })
  for (const [ended, next] of [
    ['first', 'urgent'],
    ['urgent', 'usual'],
  ] as const) {
    await finish(engine, ended)
    await untilBegun(engine, [next])
  }
  assert.equal((await put('again', { dedupKey: 'order 7' })).runId, 'again')
  await world.advance(60_000)
  await finish(engine, 'usual')
  await untilBegun(engine, ['later'])
  await engine.cancel('later')
  await untilBegun(engine, ['again'])
  await finish(engine, 'again')
  await untilBegun(engine, ['low'])
})

onEveryRunStore('the limits of the process that began last hold, also when it has none', async (world) => {
  const strict = defineQueue('mail', { perKey: 1 })
  const engine = await open(world, strict)
  const put = (runId: string) => engine.enqueue(held, { queue: strict, key: 'a', runId, input: null })
  for (const runId of ['1', '2', '3']) await put(runId)
  await until(
    'the key has no place for the others',
    () => viewOf(engine, 'mail'),
    ({ running, blocked }) => running === 1 && blocked === 2,
  )
  const other = await open(world, defineQueue('mail'))
  await put('4')
  await untilBegun(other, ['1', '2', '3', '4'])
  assert.equal((await viewOf(other, 'mail')).perKey, null)
})

onEveryRunStore('what cannot be enqueued is refused before anything is written', async (world) => {
  const mail = defineQueue('mail')
  const engine = await open(world, mail)
  const cases: readonly [options: object, text: RegExp][] = [
    [{ queue: 'mial', input: null }, /did you mean `mail`/],
    [{ queue: defineQueue('other'), input: null }, /pass it to createEngine/],
    [{ queue: mail, input: null, delay: 3 }, /no option `delay`.*`delayMs`/],
    [{ queue: mail, input: null, delayMs: -1 }, /`delayMs` must be a whole number/],
    [{ queue: mail, input: null, priority: 1e9 }, /`priority` must be a whole number/],
    [{ queue: mail, input: null, key: '' }, /needs an id/],
  ]
  for (const [options, text] of cases) {
    await assert.rejects(
      engine.enqueue(held, options as never),
      (error) => isOnceError(error, 'bad_option') && text.test(error.message),
    )
  }
  assert.equal((await viewOf(engine, 'mail')).waiting, 0)
  assert.throws(() => defineQueue('mail', { concurrency: 0 }), /whole number/)
  assert.throws(() => defineQueue('mail', { rate: { limit: 1 } as never }), /rate.perMs/)
  await assert.rejects(engine.queues.pause('mial'), (error) => isOnceError(error, 'not_found'))
  const { runId } = await engine.enqueue(held, { queue: mail, runId: 'r', input: null })
  assert.equal((await engine.enqueue(held, { queue: mail, runId, input: null })).runId, 'r')
  await assert.rejects(engine.enqueue(held, { queue: mail, runId, input: 1 as never }), (error) =>
    isOnceError(error, 'run_conflict'),
  )
})
