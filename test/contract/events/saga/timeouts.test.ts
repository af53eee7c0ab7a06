import assert from 'node:assert/strict'
import { MINUTE } from 'onceonly'
import { createAdmin } from 'onceonly/admin'
import {
  cancelled,
  createReplica,
  handled,
  onEveryStage,
  saved,
  started,
  stateOf,
} from '../../../support/events/saga/stage.ts'
import { type CrashStore, sqlStore } from '../../../support/place.ts'

onEveryStage('a timeout fires when its time has come, once, on one of several replicas', async ({ place, another }) => {
  const replicas = [another(), another(), another()]
  const [one] = replicas
  assert.ok(one !== undefined)
  await handled(one, started('s1'))
  await place.advance(59 * MINUTE)
  assert.deepEqual(await Promise.all(replicas.map(({ saga }) => saga.upkeep.deliver())), [0, 0, 0])
  await place.advance(2 * MINUTE)
  const delivered = await Promise.all(replicas.map(({ saga }) => saga.upkeep.deliver()))
  assert.equal(
    delivered.reduce((sum, count) => sum + count, 0),
    1,
    'it was taken once',
  )
  const view = await one.saga.get('s1')
  assert.deepEqual([view?.state, view?.data.reason, view?.pending], ['Error', 'too slow', []])
  assert.equal((await one.saga.history('s1')).length, 2)
})

onEveryStage('a timeout that was unscheduled, or whose instance has finished, is gone', async ({ place, replica }) => {
  const one = replica()
  await handled(one, started('saved'), saved('saved', ['a']), started('over'), cancelled('over'))
  await place.advance(61 * MINUTE)
  assert.equal(await one.saga.upkeep.deliver(), 0)
  assert.deepEqual([await stateOf(one, 'saved'), await stateOf(one, 'over')], ['Parsing', 'Error'])
})

onEveryStage('a timeout that was replaced fires at its new time only', async ({ place, replica }) => {
  const one = replica()
  await handled(one, started('s1'))
  await place.advance(30 * MINUTE)
  await handled(one, started('s1'))
  assert.equal((await one.saga.get('s1'))?.pending.length, 1)
  await place.advance(45 * MINUTE)
  assert.equal(await one.saga.upkeep.deliver(), 0)
  await place.advance(16 * MINUTE)
  assert.equal(await one.saga.upkeep.deliver(), 1)
  assert.equal((await one.saga.get('s1'))?.data.reason, 'too slow, again')
  assert.ok(one.events.some((event) => event.kind === 'warned' && event.warning === 'started twice'))
})

/** A store whose next transaction waits at the door. */
function createHalting(store: CrashStore) {
  const reached = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  let armed = false
  const transactions: CrashStore['transactions'] = {
    async run(work, call) {
      if (armed) {
        armed = false
        reached.resolve()
        await open.promise
      }
      return await store.transactions.run(work, call)
    },
  }
  return {
    store: { ...store, transactions },
    arm: () => void (armed = true),
    reached: reached.promise,
    open: open.resolve,
  }
}

for (const [how, meanwhile] of [
  ['unscheduled', saved('s1', ['a'])],
  ['replaced', started('s1')],
] as const) {
  onEveryStage(`a timeout that is ${how} while it is on its way is dropped`, async ({ place, another }) => {
    const halting = createHalting(place.another())
    const slow = createReplica(halting.store)
    const quick = another()
    try {
      await handled(quick, started('s1'))
      await place.advance(61 * MINUTE)
      // 1. The slow replica has taken the timeout, and is about to handle it.
      await slow.saga.upkeep.sweep()
      halting.arm()
      const delivery = slow.saga.upkeep.deliver()
      await halting.reached
      // 2. Meanwhile the other one takes it back.
      await handled(quick, meanwhile)
      const state = await stateOf(quick, 's1')
      halting.open()
      assert.equal(await delivery, 1)
      assert.equal(await stateOf(quick, 's1'), state)
      assert.deepEqual(
        slow.events.flatMap((event) => (event.kind === 'ignored' ? [[event.event, event.why]] : [])),
        [['UploadTimeout', 'stale']],
      )
      assert.equal((await quick.saga.get('s1'))?.pending.length, how === 'replaced' ? 1 : 0)
    } finally {
      await slow.stop()
    }
  })
}

onEveryStage('a timeout whose handler runs while it is taken back meets a conflict, and is dropped', async (stage) => {
  // Only where two transactions can be under way at once.
  if (stage.store.name === 'sqlite') return
  const inside = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const slow = stage.another({
    async inside(event) {
      if (event !== 'UploadTimeout') return
      inside.resolve()
      await open.promise
    },
  })
  const quick = stage.another()
  await handled(quick, started('s1'))
  await stage.place.advance(61 * MINUTE)
  const delivery = slow.saga.upkeep.deliver()
  await inside.promise
  await handled(quick, saved('s1', ['a']))
  open.resolve()
  assert.equal(await delivery, 1)
  assert.equal(await stateOf(quick, 's1'), 'Parsing')
  assert.deepEqual(
    slow.events.flatMap((event) => (event.kind === 'ignored' || event.kind === 'conflict' ? [event.kind] : [])),
    ['conflict', 'ignored'],
  )
})

onEveryStage('a timeout that fails is tried again, then parked, and can be redriven', async (stage) => {
  const { place, replica, store } = stage
  let broken = true
  const inside = (event: string) => {
    if (event === 'UploadTimeout' && broken) throw new Error('the archive is closed')
  }
  const one = replica({ inside }, { inbox: { maxFailures: 2 } })
  await handled(one, started('s1'), started('s2'))
  await place.advance(61 * MINUTE)
  assert.equal(await one.saga.upkeep.deliver(), 2)
  assert.equal(await one.saga.upkeep.deliver(), 0, 'not before its back-off is over')
  await place.advance(10 * MINUTE)
  assert.equal(await one.saga.upkeep.deliver(), 2)
  assert.deepEqual(
    (await one.saga.get('s1'))?.pending.map(({ name, parked }) => [name, parked]),
    [['UploadTimeout', true]],
  )
  await place.advance(10 * MINUTE)
  assert.equal(await one.saga.upkeep.deliver(), 0, 'what is parked waits for an operator')
  const { rows } = await one.saga.deadLetters.list()
  assert.match(rows[0]?.failure?.message ?? '', /the archive is closed/)
  broken = false
  const [mine, theirs] = ['s1', 's2'].map((id) => rows.find(({ message }) => message.key === id))
  const [redriven] = await one.saga.deadLetters.redrive({ letters: [mine?.letter ?? ''] })
  assert.ok(redriven?.result.kind === 'ran' && redriven.result.receipt.kind === 'handled')
  assert.equal(await stateOf(one, 's1'), 'Error')
  assert.deepEqual((await one.saga.get('s1'))?.pending, [])
  // An operator process does not run the saga's code: it makes the timeout due for a process that does.
  const { events } = createAdmin({ store: sqlStore(store), ledger: one.ledger })
  const again = await events?.inboxRedrive('saga.imports', [theirs?.letter ?? ''], false)
  assert.equal(again?.[0]?.result, 'due')
  assert.equal(await one.saga.deadLetters.count(), 0)
  assert.equal(await one.saga.upkeep.deliver(), 1)
  assert.equal(await stateOf(one, 's2'), 'Error')
})

onEveryStage(
  'a parked timeout that was unscheduled since is dropped when it is redriven',
  async ({ place, replica }) => {
    const inside = (event: string) => {
      if (event === 'UploadTimeout') throw new Error('never')
    }
    const one = replica({ inside }, { inbox: { maxFailures: 1 } })
    await handled(one, started('s1'))
    await place.advance(61 * MINUTE)
    assert.equal(await one.saga.upkeep.deliver(), 1)
    await handled(one, saved('s1', ['a']))
    const [redriven] = await one.saga.deadLetters.redrive({})
    assert.ok(redriven?.result.kind === 'ran' && redriven.result.receipt.kind === 'handled')
    assert.equal(await stateOf(one, 's1'), 'Parsing')
    assert.equal((await one.saga.history('s1')).at(-1)?.did, 'ignored')
  },
)

onEveryStage('the background loop delivers due timeouts', async ({ place, replica }) => {
  const fired = Promise.withResolvers<void>()
  const one = replica(
    {},
    {
      background: true,
      dueEveryMs: 20,
      on: (event) => {
        if (event.kind === 'handled' && event.event === 'UploadTimeout') fired.resolve()
      },
    },
  )
  await handled(one, started('s1'))
  await place.advance(61 * MINUTE)
  await fired.promise
  assert.equal(await stateOf(one, 's1'), 'Error')
})

onEveryStage('a message from outside cannot pass for a timeout', async ({ replica }) => {
  const one = replica()
  await handled(one, started('s1'))
  const plain = await one.saga.handle({ ...started('s1'), topic: 'UploadTimeout' })
  assert.ok(plain.kind === 'parked' && plain.reason === 'final')
  const headers = { 'onceonly-saga-token': 'x', 'onceonly-saga-id': 's1', 'onceonly-saga-event': 'UploadTimeout' }
  await handled(one, { ...started('s1'), topic: 'saga.imports', headers })
  assert.equal(await stateOf(one, 's1'), 'Uploading')
  assert.ok(one.events.some((event) => event.kind === 'ignored' && event.why === 'stale'))
})
