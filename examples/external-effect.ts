import assert from 'node:assert/strict'
import { createLedger, isOnceError } from 'onceonly'
import { memoryStore } from 'onceonly/memory'

// A payment provider that loses its first answer, as networks do.
let captures = 0
const bank = {
  async capture(_order: { cents: number }, options: { idempotencyKey: string }) {
    captures++
    if (captures === 1) throw new Error(`socket hang up (key ${options.idempotencyKey})`)
    return { receipt: captures }
  },
}

const once = createLedger({ store: memoryStore() })
const capture = once.operation<{ cents: number }>({ name: 'payment.capture', effect: 'external' })
const pay = () =>
  capture.run({ tenant: 'acme', caller: 'checkout', key: 'order-1001' }, { cents: 4200 }, ({ effectKey }) =>
    bank.capture({ cents: 4200 }, { idempotencyKey: effectKey }),
  )

// The answer was lost: the outcome is unknown, and the ledger says so instead of guessing.
await assert.rejects(pay(), (error) => isOnceError(error, 'outcome_unknown'))
// A retry does not capture a second time.
await assert.rejects(pay(), (error) => isOnceError(error, 'outcome_unknown'))
assert.equal(captures, 1)

console.log('one capture, and an honest unknown')
await once.stop()
