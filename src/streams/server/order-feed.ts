import type { StreamBounds } from '../bounds.ts'
import type { OrderRow } from '../ports.ts'
import type { ChannelLink } from './connection.ts'
import { createReading } from './reading.ts'
import type { RoomOrder } from './room-order.ts'

/** Sends one client the final order, as fast as its connection takes it. */
export interface OrderFeed {
  start(after: number): void
  pump(): void
  stop(): void
}

export function createOrderFeed(options: {
  readonly order: RoomOrder
  readonly link: ChannelLink
  readonly bounds: StreamBounds
  readonly generation: number
  failed(error: unknown): void
}): OrderFeed {
  const { order, link, bounds, generation, failed } = options
  const reading = createReading(pump, failed)
  /** Every place up to it was sent, or is no longer stored. */
  let after = 0
  /** The last place that was sent to the client. */
  let sent = 0

  function send(rows: readonly OrderRow[]): void {
    const [first] = rows
    if (first === undefined) return
    const identities = rows.map(({ client, epoch, cseq }) => ({ client, epoch, cseq }))
    link.send({ kind: 'order', generation, after: sent, from: first.g, identities })
    after = first.g + rows.length - 1
    sent = after
  }

  function sendRead({ rows, head }: { readonly rows: readonly OrderRow[]; readonly head: number }): void {
    // Trimmed entries have places too, but their owners are no longer stored: continue behind them.
    if (rows.length === 0) after = Math.max(after, head)
    send(rows)
  }

  async function readStored() {
    const { head } = order.tail
    return { head, rows: await order.read(after) }
  }

  function pump(): void {
    while (reading.isReady && after < order.tail.head && link.bufferedBytes < bounds.linkBytes) {
      const rows = order.tail.after(after, bounds.orderRows)
      if (rows === null) return void reading.read(readStored, sendRead)
      send(rows)
    }
  }

  return {
    start(from) {
      reading.start()
      after = from
      sent = from
      pump()
    },
    pump,
    stop: reading.stop,
  }
}
