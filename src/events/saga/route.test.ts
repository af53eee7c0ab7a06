import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { event, ignore, timeout } from './definition.ts'
import { defineSaga, machineOf } from './machine.ts'
import { createRouter, messageOf } from './route.ts'

const parse = (body: unknown) => {
  if (typeof body !== 'object' || body === null || !('id' in body)) throw new Error('no id')
  return body as { id: string }
}

const machine = machineOf(
  defineSaga({
    name: 'doors',
    events: {
      Opened: event({ topic: 'door.opened', parse, correlate: ({ id }) => id }),
      Late: timeout<{ readonly n: number }>(),
    },
    states: [],
    terminal: ['Shut'],
    data: () => null,
    table: { initial: { Opened: ignore, Late: ignore } },
  }),
)
const route = createRouter(machine)
const incoming = { id: 'm', topic: 'door.opened', key: null, sequence: null, headers: {}, deliveries: 1 }

test('a message is routed by its topic, to the instance that its body names', () => {
  const routed = route({ ...incoming, body: '{"id":"d1"}' })
  assert.deepEqual(routed, {
    kind: 'arrival',
    arrival: { event: 'Opened', id: 'd1', body: { id: 'd1' }, token: null },
  })
})

test('what the saga hands to itself comes back as it was', () => {
  const due = { token: 't', fence: 1, id: 'd1', event: 'Late', body: '{"n":1}', deliveries: 3 }
  const message = messageOf(machine, due)
  assert.deepEqual([message.id, message.deliveries], ['saga.doors.t', 3])
  assert.deepEqual(route(message), {
    kind: 'arrival',
    arrival: { event: 'Late', id: 'd1', body: { n: 1 }, token: 't' },
  })
})

test('what cannot be understood is lost, with the reason, and never thrown', () => {
  const broken: readonly [object, RegExp][] = [
    [{ topic: 'door.painted' }, /no event under the topic door\.painted/],
    [{ topic: 'Late' }, /no event under the topic Late/],
    [{ body: '{' }, /JSON/],
    [{ body: '{}' }, /no id/],
    [{ body: '{"id":7}' }, /names no instance/],
    [{ body: '{"id":" "}' }, /names no instance/],
    [{ body: JSON.stringify({ id: 'x'.repeat(600) }) }, /names no instance/],
    [{ body: '{"id":"a\\u0000"}' }, /names no instance/],
    [{ headers: { 'onceonly-saga-token': 't', 'onceonly-saga-event': 'Nope' } }, /no event/],
  ]
  for (const [change, why] of broken) {
    const routed = route({ ...incoming, body: '{"id":"d1"}', ...change })
    assert.ok(routed.kind === 'lost')
    assert.match(String(routed.error), why)
    assert.ok(isOnceError(routed.error, 'bad_input') || routed.error instanceof Error)
  }
})
