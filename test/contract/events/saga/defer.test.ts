import assert from 'node:assert/strict'
import { DAY } from 'onceonly'
import { handled, onEveryStage, parsed, saved, started, stateOf } from '../../../support/events/saga/stage.ts'
import { sqlOf } from '../../../support/place.ts'

onEveryStage('an event that came too early is delivered again after the next transition', async ({ replica, sent }) => {
  const one = replica()
  // Before there is an instance, and while it is in a state that cannot use it yet.
  await handled(one, parsed('s1', 'a'), started('s1'))
  assert.equal(await one.saga.upkeep.deliver(), 1, 'the beginning was a transition')
  assert.deepEqual(
    (await one.saga.get('s1'))?.pending.map(({ name, event }) => [name, event]),
    [
      [null, 'FileParsed'],
      ['UploadTimeout', 'UploadTimeout'],
    ],
  )
  await handled(one, parsed('s1', 'b'))
  assert.equal(await one.saga.upkeep.deliver(), 0, 'nothing is delivered again before a transition')
  await handled(one, saved('s1', ['a', 'b']))
  assert.equal(await one.saga.upkeep.deliver(), 2)
  const view = await one.saga.get('s1')
  assert.deepEqual([view?.state, view?.data.parsed], ['Completed', new Set(['a', 'b'])])
  assert.deepEqual(view?.pending, [], 'what was delivered is not kept')
  assert.equal((await sent()).length, 3)
  assert.deepEqual(
    (await one.saga.history('s1')).map((entry) => [entry.event, entry.state, entry.did]),
    [
      ['FileParsed', 'initial', 'deferred'],
      ['Started', 'initial', 'handled'],
      ['FileParsed', 'Uploading', 'deferred'],
      ['FileParsed', 'Uploading', 'deferred'],
      ['Saved', 'Uploading', 'handled'],
      ['FileParsed', 'Parsing', 'handled'],
      ['FileParsed', 'Parsing', 'handled'],
    ],
  )
})

onEveryStage('by itself: a transition delivers what was deferred at once', async ({ replica }) => {
  const done = Promise.withResolvers<void>()
  const one = replica(
    {},
    {
      background: true,
      // So rarely that only the transition can have been the reason.
      dueEveryMs: 3_600_000,
      on: (event) => {
        if (event.kind === 'handled' && event.path.includes('Completed')) done.resolve()
      },
    },
  )
  await handled(one, started('s1'), parsed('s1', 'a'), saved('s1', ['a']))
  await done.promise
  assert.equal(await stateOf(one, 's1'), 'Completed')
})

onEveryStage('an event that is deferred while the instance moves on is not left behind', async (stage) => {
  if (stage.store.name === 'sqlite') return
  const inside = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const one = stage.another({
    async inside(event) {
      if (event !== 'Saved') return
      inside.resolve()
      await open.promise
    },
  })
  const two = stage.another()
  await handled(two, started('s1'))
  const moving = one.saga.handle(saved('s1', ['a']))
  await inside.promise
  // It is deferred after the transition was decided and before it is saved: the transition has to look again.
  await handled(two, parsed('s1', 'a'))
  open.resolve()
  assert.equal((await moving).kind, 'handled')
  assert.ok(one.events.some((event) => event.kind === 'conflict'))
  await two.saga.upkeep.deliver()
  assert.equal(await stateOf(two, 's1'), 'Completed')
})

onEveryStage('events for an instance that never begins are reported and removed', async ({ place, replica }) => {
  const one = replica()
  await handled(one, parsed('unstarted', 'a'), parsed('unstarted', 'b'))
  assert.equal(await stateOf(one, 'unstarted'), 'initial')
  await place.advance(6 * DAY)
  assert.equal(await one.saga.upkeep.sweep(), 0)
  await place.advance(2 * DAY)
  assert.equal(await one.saga.upkeep.sweep(), 1)
  assert.deepEqual(
    one.events.filter((event) => event.kind === 'expired'),
    [{ kind: 'expired', saga: 'imports', id: 'unstarted', deferred: 2 }],
  )
  assert.equal(await one.saga.get('unstarted'), null)
  for (const table of ['pending', 'history', 'instances']) {
    assert.deepEqual(await sqlOf(place.store).query(`select * from onceonly_saga_${table}`), [], table)
  }
  await handled(one, started('unstarted'))
  assert.equal(await stateOf(one, 'unstarted'), 'Uploading', 'it never began, so that its id is not used up')
})

onEveryStage('every event waits its full time for an instance to begin', async ({ place, replica }) => {
  const one = replica()
  await handled(one, parsed('late', 'a'))
  await place.advance(5 * DAY)
  await handled(one, parsed('late', 'b'))
  await place.advance(6 * DAY)
  assert.equal(await one.saga.upkeep.sweep(), 0)
  await handled(one, saved('late', ['b']))
  await one.saga.upkeep.deliver()
  assert.equal(await stateOf(one, 'late'), 'Completed')
})

onEveryStage('an instance that only waited may begin, and then has no end', async ({ place, replica }) => {
  const one = replica()
  await handled(one, parsed('s1', 'a'), started('s1'))
  await place.advance(30 * DAY)
  assert.equal(await one.saga.upkeep.sweep(), 0)
  assert.equal((await one.saga.get('s1'))?.endsAt, null)
})
