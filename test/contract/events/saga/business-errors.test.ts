import assert from 'node:assert/strict'
import { OnceError } from 'onceonly'
import { postpone } from 'onceonly/inbox'
import { handled, onEveryStage, saved, started, stateOf } from '../../../support/events/saga/stage.ts'

onEveryStage('a business error is not retried: the message is parked at once', async ({ replica, sent }) => {
  let runs = 0
  const one = replica({
    inside(event) {
      if (event !== 'Saved') return
      runs++
      throw new Error('The project is closed')
    },
  })
  await handled(one, started('s1'))
  const receipt = await one.saga.handle(saved('s1', ['a']))
  assert.ok(receipt.kind === 'parked' && receipt.failure?.message === 'The project is closed', receipt.kind)
  assert.equal(runs, 1)
  assert.deepEqual(await sent(), [])
  assert.equal(await one.saga.deadLetters.count(), 1)
})

onEveryStage('outages and the wish of a handler are retried', async ({ replica }) => {
  const errors: unknown[] = [new OnceError('stopped', 'The store is stopped.'), postpone('not now')]
  const one = replica({
    inside(event) {
      if (event === 'Saved' && errors.length > 0) throw errors.shift()
    },
  })
  await handled(one, started('s1'))
  const message = saved('s1', ['a'])
  for (let left = errors.length; left > 0; left--) {
    const receipt = await one.saga.handle(message)
    assert.ok(receipt.kind === 'later' && !receipt.counted, receipt.kind)
  }
  await handled(one, message)
  assert.equal(await stateOf(one, 's1'), 'Parsing')
  assert.equal(await one.saga.deadLetters.count(), 0)
})

onEveryStage('`maxFailures` of a saga may still be chosen', async ({ replica }) => {
  const inside = async (event: string) => {
    if (event === 'Saved') throw new Error('no')
  }
  const one = replica({ inside }, { inbox: { maxFailures: 2 } })
  await handled(one, started('s1'))
  const message = saved('s1', ['a'])
  assert.equal((await one.saga.handle(message)).kind, 'later')
  assert.equal((await one.saga.handle(message)).kind, 'parked')
})
