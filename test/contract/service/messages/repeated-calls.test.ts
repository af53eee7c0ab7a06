import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR } from 'onceonly'
import { createLog } from '../../../../service/logs.ts'
import type { Result } from '../../../../service/messages/channels/channel.ts'
import { until } from '../../../../src/testing/until.ts'
import { openDelivery, sent } from '../../../support/service/messages/delivery.ts'

/** What a call proves of an earlier one for the same message, and what it does not. */

const cut = new Error('cut')

/** A provider that gives these answers, and then accepts everything. */
function oneByOne(answers: readonly (Result | Error)[]): () => Promise<Result> {
  const left = answers.values()
  return async () => {
    const answer = left.next().value ?? sent
    if (answer instanceof Error) throw answer
    return answer
  }
}

test('a repeat that is refused as a call says nothing of the message', async () => {
  const answers: (Result | Error)[] = [cut, { kind: 'failed', error: '409: in progress', aboutCall: true }, sent]
  await using world = await openDelivery(oneByOne(answers), { dedups: true })
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown')
  // A delivery that waits for the outcome calls the provider at once.
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown', 'the first call may still be under way')
  await world.base.advance(HOUR)
  assert.equal((await world.delivery.deliver(world.row)).status, 'sent')
})

test('a repeat that is refused for what the message is ends it', async () => {
  const answers: (Result | Error)[] = [cut, { kind: 'failed', error: '422: no such number' }]
  await using world = await openDelivery(oneByOne(answers), { dedups: true })
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown')
  const { status, error } = await world.delivery.deliver(world.row)
  assert.deepEqual([status, error], ['failed', '422: no such number'])
})

test('a key that its provider may have forgotten is not sent again', async () => {
  let calls = 0
  await using world = await openDelivery(
    async () => {
      calls++
      throw cut
    },
    { dedups: true },
  )
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown')
  await world.base.advance(22 * HOUR)
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown')
  assert.equal(calls, 2, 'asked while the key is known')
  await world.base.advance(2 * HOUR)
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown')
  assert.equal(calls, 2, 'a day later the same call could be a second message')
})

test('a response that contradicts the resolution of an operator is reported', async () => {
  const lines: string[] = []
  const answer = Promise.withResolvers<Result>()
  const heard = (about: object) => void lines.push(JSON.stringify(about))
  const log = Object.assign(createLog({ logLevel: 'silent' }), { warn: heard, error: heard })
  await using world = await openDelivery(() => answer.promise, { log })
  const unknown = await world.delivery.deliver(world.row)
  await world.delivery.resolve(unknown, { kind: 'failed', error: 'not sent' }, 'an operator')
  answer.resolve(sent)
  await until('the report', () => lines.some((line) => line.includes('message.late_answer_conflict')))
  assert.equal((await world.stateOf()).status, 'failed', 'the recorded outcome stands')
})
