import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enter, openRegion, send } from './test-peer.ts'

test('what was accepted before a fork is answered before it: the client gives up all that has no answer', async () => {
  const { region } = openRegion()
  const first = await enter(region, 'ada')
  first.say(send(1, 'the same'))
  first.say(send(2, 'theirs'))
  first.say(send(3, 'theirs, too'))
  const { results } = await first.next('ack')

  const second = await enter(region, 'ada', 2)
  second.say(send(1, 'the same'))
  second.say(send(2, 'mine'))
  await second.next('nack')
  const answers = second.frames.filter(({ kind }) => kind === 'ack' || kind === 'nack')
  assert.deepEqual(answers, [
    { kind: 'ack', floor: 4, ranges: [], results: results.slice(0, 1) },
    { kind: 'nack', cseq: 2, why: 'fork' },
  ])
  await region.stop()
})
