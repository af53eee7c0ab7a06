import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine, RunDefinition } from 'onceonly/run'
import { createEngine, stepKey } from 'onceonly/run'
import { createRandom } from '../../../src/testing/random.ts'
import { until } from '../../../src/testing/until.ts'
import type { Child, ChildLine } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { onEveryPlace, sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { startCounter } from './counter.ts'
import type { Stand, StandTask } from './stand.ts'
import { HOUR, LEASE_MS, sending, standing } from './stand.ts'

/** The end of a lease, with the grace that the store gives. */
const LAPSE_MS = LEASE_MS + 6_000

function start(place: Place, task: Omit<StandTask, 'address' | 'name'>): Child {
  const full: StandTask = { address: place.address, name: 'stand', ...task }
  return place.crew.start({ file: import.meta.resolve('./stand.ts'), task: full })
}

async function kill(place: Place, child: Child): Promise<void> {
  child.signal('SIGKILL')
  await child.ended
  await place.forgotten('stand')
}

function successor(acts: [string, number][] = []): Stand {
  const at = async () => {}
  return { inside: at, between: at, acted: (step, attempt) => void acts.push([step, attempt]), failing: false }
}

/** It is never paused: on a slow machine a short lease would only hand the run on, and steps would run again. */
// oxlint-disable-next-line typescript/no-explicit-any -- definitions of different inputs stand in one list.
const take = (place: Place, run: RunDefinition<any, any>): Promise<Engine> =>
  createEngine({ ledger: quietLedger(sqlStore(place.another())), runs: [run], pollMs: 20, leaseMs: 20 * LEASE_MS })

for (const where of ['inside', 'between'] as const) {
  onEveryPlace(`a worker paused ${where} its steps past its lease records and starts nothing more`, async (place) => {
    const child = start(place, { where })
    await child.heard(where)
    await place.pause(child)
    // Its order waits in the pipe, so that it proceeds as soon as it is resumed.
    child.order('proceed')
    await sleep(LEASE_MS + 100)
    await place.advance(LAPSE_MS)
    const acts: [string, number][] = []
    await using engine = await take(place, standing(successor(acts)))
    const by = where === 'inside' ? process.pid : child.pid
    assert.deepEqual(await engine.handle('r').result({ waitMs: 120_000 }), { by, attempt: 1 })
    const before = await engine.get('r')
    child.signal('SIGCONT')
    await child.heard('lost')
    assert.deepEqual(child.heardSoFar('acted'), [])
    assert.deepEqual(await engine.get('r'), before)
    assert.deepEqual(acts, [['second', 1]])
  })
}

onEveryPlace('attempts and their next time survive the process that made them', async (place) => {
  const child = start(place, { where: 'failing' })
  await child.heard('left')
  await kill(place, child)
  const acts: [string, number][] = []
  await using engine = await take(place, standing(successor(acts)))
  const [, second] = (await engine.get('r')).steps
  assert.deepEqual([second?.state, second?.attempts, second?.failures[0]?.message], ['retrying', 1, 'not yet'])
  await place.advance(HOUR - 60_000)
  // A moment for an engine that would try too early; it tries nothing, however long this takes.
  await sleep(200)
  assert.deepEqual(acts, [])
  await place.advance(60_000)
  assert.deepEqual(await engine.handle('r').result({ waitMs: 120_000 }), { by: child.pid, attempt: 2 })
})

onEveryPlace('two processes that start the same run have one run between them', async (place) => {
  await using counter = await startCounter({ random: createRandom(1), mostMs: 50 })
  const children = [1, 2, 3].map(() => start(place, { where: 'starting', url: counter.url }))
  for (const child of children) await child.heard('ready')
  for (const child of children) child.order('start')
  type Result = ChildLine & { readonly result: string }
  const results = await Promise.all(children.map((child) => child.heard<Result>('result')))
  assert.equal(new Set(results.map(({ result }) => result)).size, 1)
  assert.deepEqual([...counter.acts], [[stepKey('r', 'call', 0), 1]])
  assert.equal(counter.requests, 1)
})

onEveryPlace('a send that its worker did not survive is repeated only while the provider remembers', async (place) => {
  for (const lateMs of [0, 2 * HOUR]) {
    await using counter = await startCounter({ random: createRandom(1), mostMs: 1, silent: true })
    const child = start(place, { where: 'sending', url: counter.url })
    await counter.asked(1)
    await kill(place, child)
    await place.advance(LAPSE_MS + lateMs)
    await using answering = await startCounter({ random: createRandom(1), mostMs: 1 })
    await using engine = await take(place, sending(answering.url))
    const { view, result } = engine.handle('r')
    if (lateMs === 0) {
      await result({ waitMs: 120_000 })
      // The same key again, and the next step, which no process can have sent before.
      assert.deepEqual([...answering.acts.keys()], [stepKey('r', 'send', 0), stepKey('r', 'again', 0)])
    } else {
      const { steps } = await until('an outcome of the run is unknown', view, ({ state }) => state === 'unknown')
      assert.equal(answering.requests, 0)
      await engine.resolve('r', steps[1]?.key ?? '', { kind: 'succeeded', result: 'found it' })
      await result({ waitMs: 120_000 })
      assert.deepEqual([...answering.acts.keys()], [stepKey('r', 'again', 0)], 'what came later was not in doubt')
    }
    await engine.stop()
    const { sql } = sqlStore(place.store)
    for (const table of ['onceonly_runs', 'onceonly_run_steps', 'onceonly_run_workers'])
      await sql.query(`delete from ${table}`)
  }
})
