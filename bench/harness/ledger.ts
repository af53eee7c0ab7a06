import type { Ledger } from 'onceonly'
import type { Load, Loaded } from './load.ts'
import { drive } from './load.ts'
import { OPERATION, orderOf, partsOf, receiptOf } from './orders.ts'
import { mustEqual } from './program.ts'

/** How many of the first commands are repeated at the end, and must be answered from their records. */
const REPEATED = 100

/** Our side, whatever the store: unique keys, a trivial effect, every effect counted. */
export async function runOrders(ledger: Ledger<unknown>, load: Omit<Load, 'request'>): Promise<Loaded> {
  const operation = ledger.operation({ name: OPERATION, effect: 'repeatable' })
  let effects = 0
  const run = (number: number) => {
    const order = orderOf(number)
    return operation.run(partsOf(number), order, () => {
      effects++
      return receiptOf(order)
    })
  }
  const loaded = await drive({ ...load, request: run })
  const { requests } = loaded
  mustEqual('effects', effects, requests)
  for (let number = 0; number < Math.min(REPEATED, requests); number++) {
    mustEqual('a replayed receipt', (await run(number)).receipt, receiptOf(orderOf(number)).receipt)
  }
  mustEqual('effects after the replays', effects, requests)
  return loaded
}
