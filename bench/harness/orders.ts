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
