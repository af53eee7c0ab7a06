import type { HttpClient } from './http-client.ts'
import { mustEqual } from './program.ts'

/** The same small command for every store and every side: caller, input and result. */
export const OPERATION = 'bench.order'

export interface Order {
  readonly orderId: string
  readonly cents: number
}

export interface Receipt {
  readonly receipt: string
  readonly cents: number
}

export function partsOf(number: number) {
  return { tenant: 'acme', caller: 'checkout', key: `order-${number}` }
}

export function orderOf(number: number): Order {
  return { orderId: `order-${number}`, cents: number % 10_000 }
}

export function receiptOf({ orderId, cents }: Order): Receipt {
  return { receipt: `receipt of ${orderId}`, cents }
}

/** One order over HTTP, under its own key, and the receipt that must come back. */
export async function placeOrder(client: HttpClient, path: string, number: number): Promise<void> {
  const order = orderOf(number)
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': order.orderId }
  const { status, body } = await client.post(path, headers, JSON.stringify(order))
  mustEqual('the status', status, 201)
  mustEqual('the receipt', body, JSON.stringify(receiptOf(order)))
}
