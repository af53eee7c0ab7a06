import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Runtime, SqlTx } from 'onceonly'
import { isOnceError } from 'onceonly'
import { createRuntime } from '../../../../src/runtime/runtime.ts'
import {
  assertHandled,
  createReplica,
  handled,
  onEveryStage,
  parsed,
  saved,
  started,
  stateOf,
} from '../../../support/events/saga/stage.ts'

/** Does not wait, and records how long it should have. Deadlines are unchanged. */
function createImpatient(random = 0.5): Runtime & { readonly waits: number[] } {
  const waits: number[] = []
  const real = createRuntime()
  return {
    waits,
    monotonicMs: () => performance.now(),
    setTimer(ms, fire, background) {
      if (background) return real.setTimer(ms, fire, background)
      waits.push(ms)
      const timer = setImmediate(fire)
      return { cancel: () => clearImmediate(timer) }
    },
    soon: (fire) => void setImmediate(fire),
    random: () => random,
    newId: () => randomUUID().replaceAll('-', ''),
  }
}

/** As if another process had saved the instance between our reading and our saving of it. */
const interfere = async (id: string, tx: SqlTx) =>
  void (await tx.query('update onceonly_saga_instances set version = version + 1 where id = ?', [id]))

onEveryStage('a conflict is tried again on fresh state after 100, 200 and 500 ms', async ({ replica, sent }) => {
  const runtime = createImpatient()
  let calls = 0
  let conflicts = 3
  const inside = async (event: string, { id, tx }: { id: string; tx: SqlTx }) => {
    if (event !== 'Saved') return
    calls++
    if (conflicts-- > 0) await interfere(id, tx)
  }
  const one = replica({ inside }, { runtime })
  await handled(one, started('s1'))
  await handled(one, saved('s1', ['a']))
  assert.deepEqual([calls, runtime.waits], [4, [100, 200, 500]])
  assert.deepEqual(await sent(), ['StartParsing {"searchId":"s1","file":"a"}'])
  assert.deepEqual(
    one.events.flatMap((event) => (event.kind === 'conflict' ? [[event.tries, event.exhausted]] : [])),
    [
      [1, false],
      [2, false],
      [3, false],
    ],
  )
  assert.equal((await one.saga.get('s1'))?.version, 2, 'what interfered was rolled back with the conflict')
})

onEveryStage('a conflict on every try goes back to the broker, and nothing was sent or counted', async (stage) => {
  const runtime = createImpatient(0)
  let busy = true
  const inside = async (event: string, { id, tx }: { id: string; tx: SqlTx }) => {
    if (event === 'Saved' && busy) await interfere(id, tx)
  }
  const one = stage.replica(
    { inside },
    { runtime, conflictDelaysMs: [10, 20], laterMs: 700, inbox: { maxFailures: 1 } },
  )
  await handled(one, started('s1'))
  const late = saved('s1', ['a'])
  const receipt = await one.saga.handle(late)
  assert.ok(receipt.kind === 'later' && !receipt.counted)
  assert.equal(receipt.delayMs, 700)
  assert.deepEqual(runtime.waits, [7.5, 15], 'a quarter less at the least')
  assert.deepEqual([await stateOf(one, 's1'), await stage.sent()], ['Uploading', []])
  assert.equal(one.events.filter((event) => event.kind === 'failed').length, 0)
  assert.equal(await one.saga.deadLetters.count(), 0)
  busy = false
  await handled(one, { ...late, deliveries: 2 })
  assert.deepEqual([await stateOf(one, 's1'), (await stage.sent()).length], ['Parsing', 1])
})

onEveryStage('an error of the business is not tried again, whatever it looks like', async ({ replica, sent }) => {
  const runtime = createImpatient()
  let calls = 0
  const inside = () => {
    calls++
    throw Object.assign(new Error('duplicate key value violates unique constraint'), { code: '23505' })
  }
  const one = replica({ inside }, { runtime })
  const receipt = await one.saga.handle(started('s1'))
  assert.equal(receipt.kind, 'parked')
  assert.deepEqual([calls, runtime.waits, await one.saga.get('s1'), await sent()], [1, [], null, []])
  const failed = one.events.find((event) => event.kind === 'failed')
  assert.ok(failed !== undefined && !isOnceError(failed.error))
})

onEveryStage('two replicas race for the first event: one begins it, the other finds it begun', async (stage) => {
  for (const oneShot of [true, false]) {
    const id = `race-${oneShot}`
    const gate = createGate(2)
    // On PostgreSQL both are inside of their handlers at once; SQLite lets one in after the other.
    const inside = async (event: string) => {
      if (event === 'Saved') await gate.pass()
    }
    const options = { partition: false }
    const replicas = [stage.another({ inside, oneShot }, options), stage.another({ inside, oneShot }, options)]
    const before = (await stage.sent()).length
    const receipts = await Promise.all(replicas.map(({ saga }) => saga.handle(saved(id, ['a', 'b']))))
    for (const receipt of receipts) assertHandled(receipt)
    assert.equal((await stage.sent()).length - before, 2, 'one command for each file')
    const [one] = replicas
    assert.ok(one !== undefined)
    const history = await one.saga.history(id)
    assert.deepEqual(
      history.map((entry) => [entry.event, entry.state, entry.did]),
      [
        ['Saved', 'initial', 'handled'],
        ['Saved', 'Parsing', 'ignored'],
      ],
    )
  }
})

onEveryStage('many events of one instance at once, with and without the partitioner', async (stage) => {
  for (const partition of [true, false]) {
    const id = `many-${partition}`
    const names = Array.from({ length: 12 }, (_, index) => `file ${index}`)
    // Without the partitioner they meet each other: patience shows that each of them is handled on what the last one left.
    const options = { partition, conflictDelaysMs: Array.from({ length: 40 }, () => 20) }
    const replicas = [stage.another({}, options), stage.another({}, options)]
    const [one, two] = replicas
    assert.ok(one !== undefined && two !== undefined)
    await handled(one, saved(id, names))
    const receipts = await Promise.all(
      names.flatMap((name) => [one.saga.handle(parsed(id, name)), two.saga.handle(parsed(id, name))]),
    )
    for (const receipt of receipts) assertHandled(receipt)
    const view = await one.saga.get(id)
    assert.deepEqual([view?.state, view?.data.parsed.size], ['Completed', names.length])
    const completed = (await stage.sent()).filter((line) => line.startsWith('ImportCompleted') && line.includes(id))
    assert.equal(completed.length, 1)
  }
})

/** Lets all pass when all are there, or after a while: on SQLite they never are, and the end is the same. */
function createGate(size: number) {
  const open = Promise.withResolvers<void>()
  let waiting = 0
  return {
    async pass(): Promise<void> {
      if (++waiting >= size) open.resolve()
      await Promise.race([open.promise, new Promise((resolve) => void setTimeout(resolve, 300))])
    },
  }
}

onEveryStage('a store that is away is no failure of the message', async ({ place, replica }) => {
  const store = place.another()
  const away = createReplica(store)
  await handled(away, started('s1'))
  const late = saved('s1', ['a'])
  await store.stop()
  const receipts = [await away.saga.handle(late), await createReplica(store).saga.handle(late)]
  for (const receipt of receipts) assert.ok(receipt.kind === 'later' && !receipt.counted)
  assert.deepEqual(
    away.events.flatMap((event) => (event.kind === 'failed' ? [event.error] : [])),
    [],
  )
  const back = replica()
  await handled(back, { ...late, deliveries: 3 })
  assert.equal(await stateOf(back, 's1'), 'Parsing')
})
