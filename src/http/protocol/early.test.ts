import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BACKGROUND_MOST, backgroundOver, createEarly, uncommittedOf } from './early.ts'

const answer = { status: 202, headers: [], body: new Uint8Array() }
const ledger = {}

function handler(key: string, transactional = true) {
  const over = Promise.withResolvers<void>()
  const identity = { tenant: 't', caller: 'c', operation: 'o', key }
  let id = ''
  const early = createEarly(0, { ledger, identity, transactional, over: over.promise }, (given) => {
    id = given
    return answer
  })
  return { early, over, id: () => id }
}

test('places in the background are bounded, and free again when the outcome is recorded, or never will be', async () => {
  const running = Array.from({ length: BACKGROUND_MOST }, (_, at) => handler(`key-${at}`))
  for (const { early } of running) assert.equal(early.answer(), answer)
  const next = handler('next')
  assert.equal(next.early.answer(), null)
  running[0]?.over.resolve()
  await running[0]?.over.promise
  assert.equal(next.early.answer(), answer)
  assert.equal(handler('more').early.answer(), null)
  next.over.reject(new Error('lost'))
  for (const { over } of running) over.resolve()
  await backgroundOver(ledger)
  const later = handler('later')
  assert.equal(later.early.answer(), answer)
  later.over.resolve()
  await backgroundOver(ledger)
})

test('only a transaction is reported before its record exists, and only to its own ledger', async () => {
  const inside = handler('inside')
  const leased = handler('leased', false)
  inside.early.answer()
  leased.early.answer()
  assert.equal(uncommittedOf(ledger, inside.id())?.identity.key, 'inside')
  assert.equal(uncommittedOf({}, inside.id()), null)
  assert.equal(uncommittedOf(ledger, leased.id()), null)
  let over = false
  const waited = backgroundOver(ledger).then(() => void (over = true))
  leased.over.resolve()
  await leased.over.promise
  assert.equal(over, false)
  inside.over.resolve()
  await waited
  assert.equal(uncommittedOf(ledger, inside.id()), null)
})
