import type { OutboxPort, SqlTx } from 'onceonly'
import type { IncomingMessage } from 'onceonly/inbox'
import { createReplica, outbox } from '../../../support/events/saga/stage.ts'
import type { Address } from '../../../support/place.ts'
import { openStore } from '../../../support/place.ts'
import { listen, readTask, report } from '../../crash/member.ts'

/** Another process with the same saga: handles what it is given until all of it is done, or dies where its task says. */

export interface WorkerTask {
  readonly address: Address
  readonly name: string
  /** Where this process ends itself. */
  readonly dies?: 'before_commit' | 'after_commit' | 'in_timeout'
}

/** Both at once: messages from a broker, then whatever is due. */
export interface Order {
  readonly messages: readonly IncomingMessage[]
  readonly deliver: boolean
}

/** An acknowledgement: this message is not redelivered. */
export interface Acked {
  readonly kind: 'acked'
  /** Its place in the order. */
  readonly index: number
}

export interface Done {
  readonly kind: 'done'
  readonly receipts: Readonly<Record<string, number>>
  /** Everything that an operator would have heard of. */
  readonly complaints: readonly string[]
}

const task = readTask<WorkerTask>()
const die = () => process.kill(process.pid, 'SIGKILL')

/** Long enough for the signal to arrive: nothing may happen after it. */
const nothing = () => new Promise<never>(() => {})

const deadly: OutboxPort<SqlTx> = {
  async add(tx, message) {
    await outbox.add(tx, message)
    if (task.dies !== 'before_commit') return
    die()
    await nothing()
  },
}

const complaints: string[] = []
const { store, close } = openStore(task.address, task.name)
const replica = createReplica(
  store,
  {
    async inside(event) {
      if (task.dies !== 'in_timeout' || event !== 'UploadTimeout') return
      report({ kind: 'in_timeout' })
      await nothing()
    },
  },
  {
    // Processes are killed here for reasons that are not the messages' own.
    inbox: { maxUnfinished: 1_000 },
    on(event) {
      if (event.kind === 'failed') complaints.push(String(event.error))
      if (event.kind === 'handled' && task.dies === 'after_commit') die()
    },
  },
  deadly,
)

const receipts: Record<string, number> = {}

/** As a broker does: redelivers a postponed message after its delay. */
async function untilSettled(message: IncomingMessage): Promise<void> {
  for (let deliveries = message.deliveries ?? 1; ; deliveries++) {
    const receipt = await replica.saga.handle({ ...message, deliveries })
    receipts[receipt.kind] = (receipts[receipt.kind] ?? 0) + 1
    if (receipt.kind !== 'later' && receipt.kind !== 'waiting') return
    if (receipt.kind === 'later' && receipt.counted) complaints.push(String(receipt.error))
    await new Promise((resolve) => void setTimeout(resolve, receipt.delayMs))
  }
}

/** As many as a subscription has under way. */
const LANES = 8

async function all(messages: readonly IncomingMessage[]): Promise<void> {
  const left = [...messages.entries()]
  const lane = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, message] = next
      await untilSettled(message)
      report<Acked>({ kind: 'acked', index })
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

const orders = listen()
report({ kind: 'ready' })
const order = (await orders.next()) as Order
await all(order.messages)
if (order.deliver) await replica.saga.upkeep.deliver()
await replica.stop()
await close()
report<Done>({ kind: 'done', receipts, complaints })
process.exit(0)
