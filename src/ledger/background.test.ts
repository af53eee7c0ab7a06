import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { createRuntime, type Runtime } from '../runtime/runtime.ts'
import { until } from '../testing/until.ts'
import { DAY, MINUTE } from './core/limits.ts'
import { createLedger } from './ledger.ts'
import { memoryStore } from './stores/memory/index.ts'

const real = createRuntime()
/** Rounds come at once; what calls wait for is not in the background, and stays as it is. */
const hasty: Runtime = {
  ...real,
  setTimer: (ms, fire, background) => real.setTimer(background ? Math.min(ms, 20) : ms, fire, background),
}

const call = { timeoutMs: 5_000 }
const who = { tenant: 't', caller: 'c', key: 'k' }

/** A ledger that looks after its store by itself, and one whose process died in the middle of an effect. */
function open(context: TestContext) {
  const store = memoryStore({ testClock: true })
  const dead = createLedger({ store, background: false })
  const alive = createLedger({ store, runtime: hasty })
  context.after(async () => {
    await alive.stop()
    await store.stop()
  })
  const stateOf = async (operation: string) => (await alive.get({ ...who, operation }))?.record.state ?? null
  return { store, dead, alive, stateOf, advance: (ms: number) => store.clock.advance(ms, call) }
}

test('by itself: a lease that lapsed is found', async (context) => {
  const { dead, alive, stateOf, advance } = open(context)
  alive.operation({ name: 'pay', effect: 'external' })
  await dead.operation({ name: 'pay', effect: 'external' }).claim(who, 1)
  await advance(5 * MINUTE)
  await until('its outcome is unknown', async () => (await stateOf('pay')) === 'unknown')
})

test('by itself: a provider is asked about an unknown outcome', async (context) => {
  const { dead, alive, stateOf, advance } = open(context)
  const probe = async () => ({ answer: 'happened', value: 'paid' }) as const
  alive.operation({ name: 'pay', effect: 'external', probe })
  await dead.operation({ name: 'pay', effect: 'external', probe }).claim(who, 1)
  await advance(5 * MINUTE)
  await until('it is known', async () => (await stateOf('pay')) === 'succeeded')
})

test('by itself: what is past its end is removed', async (context) => {
  const { alive, advance } = open(context)
  let removed = 0
  alive.on((event) => {
    if (event.kind === 'swept') removed += event.removed
  })
  const pay = alive.operation({ name: 'pay', effect: 'repeatable', retainMs: DAY })
  await pay.run(who, 1, () => 'paid')
  await advance(2 * DAY)
  await until('it is swept', () => removed === 1)
  assert.equal(await alive.get({ ...who, operation: 'pay' }), null)
})

test('by itself: what was counted is written', async (context) => {
  const { store, alive } = open(context)
  const pay = alive.operation({ name: 'pay', effect: 'repeatable' })
  for (const _ of [1, 2, 3]) await pay.run(who, 1, () => 'paid')
  const busiest = await until(
    'the counts are there',
    () => store.queries.busiest(0, 10, call),
    (rows) => rows.length > 0,
  )
  assert.deepEqual(
    busiest.map(({ caller, claims, replays }) => [caller, claims, replays]),
    [['c', 1, 2]],
  )
})
