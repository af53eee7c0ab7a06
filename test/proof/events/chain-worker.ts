import { createLedger } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { createSaga } from 'onceonly/saga'
import { defineImports } from '../../support/events/saga/imports.ts'
import type { Address } from '../../support/place.ts'
import { openStore, sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { listen, readTask, report } from '../crash/member.ts'
import type { BrokerAddress } from './outbox/broker.ts'
import { openBroker } from './outbox/broker.ts'

/** One replica of everything: a relay, the saga, and the consumers of its commands. It works until it is killed. */
export interface ChainTask {
  readonly address: Address
  readonly broker: BrokerAddress
  readonly leaseMs: number
}

/** Something that an operator would have heard of. */
export interface Complaint {
  readonly kind: 'complaint'
  readonly text: string
}

interface Command {
  readonly searchId: string
  readonly file?: string
}

const complain = (what: string, error: unknown) => report<Complaint>({ kind: 'complaint', text: `${what}: ${error}` })

const task = readTask<ChainTask>()
const orders = listen()
const opened = openStore(task.address)
const store = sqlStore(opened.store)
const ledger = createLedger({ store })
const outbox = createOutbox({ ledger })
await outbox.prepare()
const broker = await openBroker(task.broker, store)

const saga = createSaga({
  definition: defineImports(),
  ledger,
  dueEveryMs: 200,
  on(event) {
    if (event.kind === 'failed') complain(event.event, event.error)
  },
})

// In the order in which the saga has said it. The place of each is counted, so that it can be held against its number.
const parser = createInbox({
  ledger,
  consumer: 'parser',
  ordered: true,
  on(event) {
    if (event.kind === 'failed') complain(event.topic, event.error)
    if (event.kind === 'parked' || event.kind === 'conflict') complain(event.topic, event.kind)
    if (event.kind === 'warning') complain(event.consumer, event.warning.what)
  },
})

await saga.consume(broker)
await parser.consume<Command>(
  broker,
  { topics: ['StartParsing', 'ImportCompleted'] },
  async ({ searchId, file }, { tx, message, outbox: sends }) => {
    await tx.query(
      `insert into business (place, key, value)
         select count(*) + 1, cast(? as text), cast(? as text) from business where key = ?`,
      [searchId, `${message.sequence} ${file ?? 'completed'}`, searchId],
    )
    // Under a key of its own: the numbers of the other one belong to what the saga says.
    if (file !== undefined) {
      await sends.add({ topic: 'parsed', key: `parsed ${searchId}`, body: { searchId, name: file } })
    }
  },
)
const relay = createRelay({ ledger: quietLedger(store), publisher: broker, leaseMs: task.leaseMs })
report({ kind: 'ready' })

await orders.next()
await relay.stop()
await saga.stop()
await parser.stop()
await broker.stop()
await ledger.stop()
await opened.close()
report({ kind: 'stopped' })
process.exit(0)
