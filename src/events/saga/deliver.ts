import { createHeldRows } from '../../ledger/store/held-rows.ts'
import type { Runtime } from '../../runtime/runtime.ts'
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
  readonly runtime: Runtime
  handle(message: IncomingMessage): Promise<Receipt>
  failed(error: unknown): void
  recovered(failures: number): void
}

export function createDeliverer({ machine, pending, runtime, handle, failed, recovered }: DeliverParts): Deliverer {
  const { leases } = pending
  const held = createHeldRows<'token', Taken>({ runtime, leases, leaseMs: sagaLimits.dueLeaseMs, failed, recovered })

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
      const sentAtMs = held.nowMs()
      const taken = (await pending.take()).map((row) => ({ row, lease: held.hold(row, sentAtMs) }))
      // Events of one instance in the order in which they were kept; different instances at the same time.
      const queues = [...Map.groupBy(taken, ({ row }) => row.id).values()]
      const lane = async () => {
        for (let queue = queues.shift(); queue !== undefined; queue = queues.shift()) {
          for (const { row, lease } of queue) {
            // One that cannot be delivered is left until its lease is over; the others do not wait for it. One whose lease
            // has ended is left to the process that takes it next.
            if (lease.lasts()) await deliver(row).catch(failed)
            lease.letGo()
          }
        }
      }
      await Promise.all(Array.from({ length: sagaLimits.dueLanes }, lane))
      return taken.length
    },
  }
}
