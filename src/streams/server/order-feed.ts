import type { StreamBounds } from '../bounds.ts'
import type { OrderRow } from '../ports.ts'
import type { ChannelLink } from './connection.ts'
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
  let started = false
  /** Every place up to it was sent, or is no longer stored. */
  let after = 0
  /** The last place that was sent to the client. */
  let sent = 0
  let life = 0
  let reading = false

  function send(rows: readonly OrderRow[]): void {
    const [first] = rows
    if (first === undefined) return
    const identities = rows.map(({ client, epoch, cseq }) => ({ client, epoch, cseq }))
    link.send({ kind: 'order', generation, after: sent, from: first.g, identities })
    after = first.g + rows.length - 1
    sent = after
  }

  async function readOn(): Promise<void> {
    const mine = life
    const { head } = order.tail
    reading = true
    try {
      const rows = await order.read(after)
      if (mine === life) {
        // Trimmed entries have places too, but their owners are no longer stored: continue behind them.
        if (rows.length === 0) after = Math.max(after, head)
        send(rows)
      }
    } catch (error) {
      if (mine === life) failed(error)
    } finally {
      reading = false
    }
    // What was read for an earlier start is not sent, but the later one has waited for it to end.
    pump()
  }

  function pump(): void {
    while (started && !reading && after < order.tail.head && link.bufferedBytes < bounds.linkBytes) {
      const rows = order.tail.after(after, bounds.orderRows)
      if (rows === null) return void readOn()
      send(rows)
    }
  }

  return {
    start(from) {
      life += 1
      started = true
      after = from
      sent = from
      pump()
    },
    pump,
    stop() {
      life += 1
      started = false
    },
  }
}
