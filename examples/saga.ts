import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger, HOUR } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { createSaga, defineSaga, describeSaga, event, given, ignore, timeout } from 'onceonly/saga'
import { sqliteStore } from 'onceonly/sqlite'

// An order waits for its payment, and is given up after an hour. Every pair of state and event is decided: leave one out,
// and this file does not compile.
const orders = defineSaga({
  name: 'orders',
  events: {
    OrderPlaced: event<{ order: string; cents: number }>({ correlate: ({ order }) => order }),
    OrderPaid: event<{ order: string }>({ correlate: ({ order }) => order }),
    PaymentTimeout: timeout(),
  },
  states: ['AwaitingPayment'],
  terminal: ['Shipped', 'GivenUp'],
  oneShot: true,
  data: () => ({ cents: 0 }),
  table: {
    initial: {
      OrderPlaced: {
        to: ['AwaitingPayment'],
        handle(data, { cents }, { schedule, transitionTo }) {
          data.cents = cents
          schedule('PaymentTimeout', null, { afterMs: HOUR })
          transitionTo('AwaitingPayment')
        },
      },
      OrderPaid: { ...ignore, because: 'there is no order' },
      PaymentTimeout: ignore,
    },
    AwaitingPayment: {
      OrderPlaced: ignore,
      OrderPaid: {
        to: ['Shipped'],
        handle(_data, { order }, { send, transitionTo }) {
          send('ShipOrder', { order })
          transitionTo('Shipped')
        },
      },
      PaymentTimeout: { to: ['GivenUp'], handle: (_data, _timeout, { transitionTo }) => transitionTo('GivenUp') },
    },
  },
})

// Tested without a database …
await given(orders).when('OrderPlaced', { order: 'o1', cents: 4200 }).elapse(HOUR).expect({ state: 'GivenUp' })
// … drawn without running …
assert.match(describeSaga(orders).mermaid, /AwaitingPayment --> GivenUp: PaymentTimeout/)

// … and run: on SQLite here, with a broker that hands over every message twice.
const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const ledger = createLedger({ store: sqliteStore(join(folder, 'orders.db')) })
const outbox = createOutbox({ ledger })
await outbox.prepare()
const saga = createSaga({ definition: orders, ledger })
const message = (id: string, topic: string, body: unknown) => {
  return { id, topic, key: null, sequence: null, body: JSON.stringify(body), headers: {}, deliveries: 1 }
}
const placed = message('m1', 'OrderPlaced', { order: 'o1', cents: 4200 })
const paid = message('m2', 'OrderPaid', { order: 'o1' })
const receipts = []
for (const each of [placed, placed, paid, paid]) receipts.push((await saga.handle(each)).kind)
assert.deepEqual(receipts, ['handled', 'duplicate', 'handled', 'duplicate'])
assert.equal((await saga.get('o1'))?.state, 'Shipped')
assert.equal((await outbox.status()).pending, 1)

console.log('one order, one shipment, whatever the broker does')
await ledger.stop()
rmSync(folder, { recursive: true })
