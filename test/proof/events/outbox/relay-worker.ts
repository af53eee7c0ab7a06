import type { Publisher } from 'onceonly/outbox'
import { createRelay } from 'onceonly/outbox'
import type { Address } from '../../../support/place.ts'
import { openStore, sqlStore } from '../../../support/place.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import { listen, readTask, report } from '../../crash/member.ts'
import type { BrokerAddress } from './broker.ts'
import { openBroker } from './broker.ts'

/** A relay in a process of its own. It works until it is stopped or killed. */
export interface RelayTask {
  readonly address: Address
  readonly broker: BrokerAddress
  readonly leaseMs: number
}

const task = readTask<RelayTask>()
const orders = listen()
const { store, close } = openStore(task.address)
const broker = await openBroker(task.broker, sqlStore(store))
const publisher: Publisher = {
  name: broker.name,
  async publish(messages, call) {
    report({ kind: 'publishing' })
    const answers = await broker.publish(messages, call)
    report({ kind: 'answered' })
    return answers
  },
}
const relay = createRelay({
  ledger: quietLedger(sqlStore(store)),
  publisher,
  leaseMs: task.leaseMs,
  on(event) {
    if (event.kind === 'lease_lost') report({ kind: 'lease_lost' })
  },
})
await orders.next()
await relay.stop()
await broker.stop()
await close()
process.exit(0)
