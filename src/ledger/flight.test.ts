import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from './declared.ts'
import type { Landing } from './flight.ts'
import { createFlights, watch } from './flight.ts'

const command: Command = {
  identity: { tenant: 'acme', caller: 'ann', operation: 'pay', key: 'k' },
  id: 'a'.repeat(32),
  input: null,
  fingerprints: ['v1:1:x'],
  as: null,
}
const settled: Landing = { kind: 'failed', data: null, cause: undefined }

test('a flight that was left is not joined, takes nothing from its successor, and is still waited for', async () => {
  const flights = createFlights()
  const left = flights.start(command, false)
  flights.leave(left)
  assert.equal(flights.get(command.id), null)
  const successor = flights.start(command, false)
  let drained = false
  const draining = flights.drain().then(() => void (drained = true))
  flights.land(successor, settled)
  assert.equal(flights.get(command.id), null)
  const third = flights.start(command, false)
  flights.land(left, settled)
  await watch(left, () => left.landing).seen
  assert.equal(flights.get(command.id), third, 'the one that was left has landed, and this one has not')
  assert.equal(drained, false)
  flights.land(third, settled)
  await draining
})

test('a flight that has landed cannot be left any more', async () => {
  const flights = createFlights()
  const flight = flights.start(command, false)
  flights.land(flight, settled)
  flights.leave(flight)
  await flights.drain()
})

test('a wait that is given up leaves no listener behind', () => {
  const flights = createFlights()
  const flight = flights.start(command, false)
  {
    using _wait = watch(flight, () => flight.landing)
    assert.equal(flight.listeners?.size, 1)
  }
  assert.equal(flight.listeners?.size, 0)
})
