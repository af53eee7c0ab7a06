import type { IncomingMessage } from '../inbox/port.ts'
import type { Receipt } from '../inbox/receipt.ts'
import { sagaLimits } from './limits.ts'
import type { Machine } from './machine.ts'
import type { Pending, Taken } from './pending.ts'
import { messageOf } from './route.ts'

/** Hands due timeouts and freed events to the saga, as messages. Any number of processes may do so at once. */
export interface Deliverer {
  /** Takes what is due now, and delivers it. Answers how many rows that were. */
  round(): Promise<number>
}

export interface DeliverParts {
  readonly machine: Machine
  readonly pending: Pending
  handle(message: IncomingMessage): Promise<Receipt>
  failed(error: unknown): void
}

export function createDeliverer({ machine, pending, handle, failed }: DeliverParts): Deliverer {
  async function deliver(row: Taken): Promise<void> {
    const receipt = await handle(messageOf(machine, row))
    switch (receipt.kind) {
      case 'handled':
      case 'not_ours':
        // Its row went with the transaction, or was given another meaning in it.
        return
      case 'duplicate':
        // Taken a second time because the first process was slow, or died before it could write the result.
        return await (receipt.first.settled.kind === 'parked' ? pending.park(row) : pending.remove(row))
      case 'conflict':
      case 'parked':
        return await pending.park(row)
      case 'later':
      case 'waiting':
        return await pending.postpone(row, receipt.delayMs)
    }
  }

  return {
    async round() {
      const taken = await pending.take()
      // Events of one instance in the order in which they were kept; different instances at the same time.
      const queues = [...Map.groupBy(taken, ({ id }) => id).values()]
      const lane = async () => {
        for (let queue = queues.shift(); queue !== undefined; queue = queues.shift()) {
          for (const row of queue) {
            // One that cannot be delivered is left until its lease is over; the others do not wait for it.
            await deliver(row).catch(failed)
          }
        }
      }
      await Promise.all(Array.from({ length: sagaLimits.dueLanes }, lane))
      return taken.length
    },
  }
}
