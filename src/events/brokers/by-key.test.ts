import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { brokerLimits } from '../../ledger/core/limits.ts'
import type { OutgoingMessage, Published } from '../outbox/port.ts'
import { publishByKey } from './by-key.ts'

const confirmed: Published = { kind: 'confirmed' }
/** A deadline that does not come. */
const never = new Promise<void>(() => {})
const refused: Published = { kind: 'refused', reason: 'for the test' }

function message(id: number, key: string | null, topic: string, body = '{}'): OutgoingMessage {
  return { id: String(id), topic, key, sequence: key === null ? null : id, body, headers: {} }
}

test('one topic goes out together, in the order of the call', async () => {
  const sent: string[] = []
  const answers = publishByKey(
    [0, 1, 2, 3, 4, 5].map((n) => message(n, `k${n % 2}`, 't')),
    async ({ id }) => {
      sent.push(id)
      return confirmed
    },
    never,
  )
  assert.deepEqual(sent, ['0', '1', '2', '3', '4', '5'])
  assert.deepEqual(await answers, Array(6).fill(confirmed))
})

test('a refused topic stops its key before the next topic is sent, and no other key', async () => {
  const sent: string[] = []
  const answers = await publishByKey(
    [message(0, 'a', 'bad'), message(1, 'a', 'good'), message(2, 'b', 'good'), message(3, null, 'good')],
    async ({ id, topic }) => {
      sent.push(id)
      return topic === 'bad' ? refused : confirmed
    },
    never,
  )
  assert.deepEqual(
    answers.map(({ kind }) => kind),
    ['refused', 'unavailable', 'confirmed', 'confirmed'],
  )
  assert.deepEqual(sent, ['0', '2', '3'])
})

test('a large message goes out alone among those of its key', async () => {
  const large = 'x'.repeat(brokerLimits.smallCharacters + 1)
  const sent: string[] = []
  const answers = await publishByKey(
    [message(0, 'a', 't'), message(1, 'a', 't', large), message(2, 'a', 't')],
    async ({ id, body }) => {
      sent.push(id)
      return body === large ? refused : confirmed
    },
    never,
  )
  assert.deepEqual(
    answers.map(({ kind }) => kind),
    ['confirmed', 'refused', 'unavailable'],
  )
  assert.deepEqual(sent, ['0', '1'])
})

test('whatever the broker says and in whatever order it answers, a key is confirmed from its beginning on', async () => {
  const steps = fc.array(
    fc.record({
      key: fc.constantFrom('a', 'b', 'c', null),
      topic: fc.constantFrom('s', 't'),
      kind: fc.constantFrom('confirmed', 'confirmed', 'confirmed', 'refused', 'unavailable'),
    }),
    { maxLength: 20 },
  )
  await fc.assert(
    fc.asyncProperty(steps, fc.scheduler(), async (plan, scheduler) => {
      const started: number[] = []
      const publishing = publishByKey(
        plan.map(({ key, topic }, n) => message(n, key, topic)),
        async ({ id }) => {
          started.push(Number(id))
          const kind = plan[Number(id)]?.kind ?? 'confirmed'
          await scheduler.schedule(Promise.resolve())
          return kind === 'confirmed' ? confirmed : { kind: kind === 'refused' ? 'refused' : 'unavailable', reason: '' }
        },
        never,
      )
      const answers = await scheduler.waitFor(publishing)
      for (const key of ['a', 'b', 'c']) {
        const own = plan.flatMap((step, n) => (step.key === key ? [n] : []))
        const firstFailure = own.findIndex((n) => plan[n]?.kind !== 'confirmed')
        const expected = own.map((_, index) => firstFailure === -1 || index < firstFailure)
        assert.deepEqual(
          own.map((n) => answers[n]?.kind === 'confirmed'),
          expected,
        )
        const startedOfKey = started.filter((n) => plan[n]?.key === key)
        assert.deepEqual(
          startedOfKey,
          startedOfKey.toSorted((one, other) => one - other),
        )
        // Behind a failure only the rest of its own run may have been sent.
        const failedTopic = plan[own[firstFailure] ?? -1]?.topic
        const beyond = own.slice(firstFailure).findIndex((n) => plan[n]?.topic !== failedTopic)
        if (firstFailure !== -1 && beyond !== -1) {
          const limit = own[firstFailure + beyond] ?? 0
          assert.ok(startedOfKey.every((n) => n < limit))
        }
      }
    }),
  )
})

test('what is not answered by the deadline is answered then, and nothing more is sent', async () => {
  const late = Promise.withResolvers<void>()
  const last = Promise.withResolvers<Published>()
  const sent: string[] = []
  const answers = publishByKey(
    [message(0, 'a', 't'), message(1, 'a', 't'), message(2, 'a', 'u'), message(3, null, 't'), message(4, 'b', 't')],
    async ({ id }) => {
      sent.push(id)
      return id === '0' || id === '3' ? await last.promise : confirmed
    },
    late.promise,
  )
  late.resolve()
  assert.deepEqual(
    (await answers).map((answer) => (answer.kind === 'confirmed' ? answer.kind : answer.reason)),
    [
      'The broker did not confirm in time.',
      'An earlier message of the same key was not confirmed.',
      'An earlier message of the same key was not confirmed.',
      'The broker did not confirm in time.',
      'confirmed',
    ],
  )
  // The answer that comes afterwards starts nothing.
  last.resolve(confirmed)
  await setImmediate()
  assert.deepEqual(sent, ['0', '1', '3', '4'])
})
