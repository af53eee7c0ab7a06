import { createHttpClient } from '../harness/http-client.ts'
import { orderOf, receiptOf } from '../harness/orders.ts'
import { mustEqual } from '../harness/program.ts'
import { PATH } from './task.ts'

/** A caller of the route, who looks at every answer. */
export function createCaller(port: number) {
  const client = createHttpClient(port, { polls: true })
  return {
    client,
    /** Both sides are sent the key: the bare one reads past it. */
    async ask(number: number, replayed: boolean): Promise<void> {
      const order = orderOf(number)
      const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': order.orderId }
      const { status, head, body } = await client.post(PATH, headers, JSON.stringify(order))
      mustEqual('the status', status, 201)
      mustEqual('the receipt', body, JSON.stringify(receiptOf(order)))
      mustEqual('a replay', head.includes('dempotent-'), replayed)
    },
  }
}
