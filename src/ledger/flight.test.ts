import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from './declared.ts'
import type { Landing } from './flight.ts'
import { createFlights } from './flight.ts'

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
  const first = Promise.withResolvers<Landing>()
  const second = Promise.withResolvers<Landing>()
  const left = flights.start(command, () => first.promise)
  flights.leave(left)
  assert.equal(flights.get(command.id), undefined)
  const successor = flights.start(command, () => second.promise)
  let drained = false
  const draining = flights.drain().then(() => void (drained = true))
  second.resolve(settled)
  await successor.landed
  assert.equal(flights.get(command.id), undefined)
  const last = Promise.withResolvers<Landing>()
  const third = flights.start(command, () => last.promise)
  first.resolve(settled)
  await left.landed
  assert.equal(flights.get(command.id), third, 'the one that was left has landed, and this one has not')
  assert.equal(drained, false)
  last.resolve(settled)
  await draining
})

test('a flight that has landed cannot be left any more', async () => {
  const flights = createFlights()
  const flight = flights.start(command, async () => settled)
  await flight.landed
  flights.leave(flight)
  await flights.drain()
})
