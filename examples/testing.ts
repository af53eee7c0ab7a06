import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger, DAY, type Ledger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createFakeClock, createFaultyStore } from 'onceonly/testing'

interface Bank {
  capture(cents: number, key: string): Promise<string>
}

// The code under test. Its ledger is an argument, so that a test can give it another store and another clock.
function createPayments(once: Ledger<unknown>, bank: Bank) {
  const capture = once.operation<number>({ name: 'payment.capture', effect: 'external', retainMs: 7 * DAY })
  return {
    pay: (order: string, cents: number) =>
      capture.run({ tenant: 'acme', caller: 'shop', key: order }, cents, ({ effectKey }) =>
        bank.capture(cents, effectKey),
      ),
  }
}

function createBank() {
  const captured: string[] = []
  return { captured, capture: async (_cents: number, key: string) => `receipt ${captured.push(key)}` }
}

test('a retry within a week is answered from the record', async () => {
  const clock = createFakeClock()
  const once = createLedger({ store: memoryStore({ clock }), runtime: clock.runtime, background: false })
  const bank = createBank()
  const { pay } = createPayments(once, bank)
  assert.equal(await pay('order-1', 4200), 'receipt 1')
  clock.advance(6 * DAY)
  assert.equal(await pay('order-1', 4200), 'receipt 1')
  // Past its retention the record is gone, and the key is new.
  clock.advance(2 * DAY)
  assert.equal(await pay('order-1', 4200), 'receipt 2')
  await once.stop()
})

test('the store loses an acknowledgement: the bank is not called again', async () => {
  let settles = 0
  const store = createFaultyStore(memoryStore(), {
    // The outcome is stored, and the answer that says so never arrives.
    script: ({ request }) => (request?.kind === 'settle' && settles++ === 0 ? 'lost_answer' : 'none'),
  })
  const once = createLedger({ store, background: false })
  const bank = createBank()
  const { pay } = createPayments(once, bank)
  assert.equal(await pay('order-1', 4200), 'receipt 1')
  assert.equal(await pay('order-1', 4200), 'receipt 1')
  assert.equal(store.faults.log.length, 1)
  assert.equal(bank.captured.length, 1)
  await once.stop()
})

// The same seed finds the same faults: a test that fails names it.
for (const seed of [1, 2, 3, 4, 5]) {
  test(`no order is captured twice on a bad network (seed ${seed})`, async () => {
    const store = createFaultyStore(memoryStore(), { seed, rate: 0.3 })
    const once = createLedger({ store, background: false })
    const bank = createBank()
    const { pay } = createPayments(once, bank)
    for (const order of ['a', 'b', 'c']) {
      for (let retry = 0; retry < 4; retry++) await pay(order, 4200).catch(() => undefined)
    }
    assert.equal(new Set(bank.captured).size, bank.captured.length, `${bank.captured.length} captures`)
    await once.stop()
  })
}
