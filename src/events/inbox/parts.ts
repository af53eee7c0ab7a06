import type { Ledger } from '../../ledger/ledger.ts'
import type { TransactionalOperation } from '../../ledger/operation.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { DeadLetterBox } from './dead-letters.ts'
import type { InboxEvent } from './events.ts'
import type { Failures } from './failures.ts'
import type { InboxOptions, Settings } from './options.ts'
import type { Order } from './order.ts'
import type { Settled } from './receipt.ts'

/** What the record of a message remembers. */
export interface Recorded {
  readonly settled: Settled
  readonly delivery: number | null
  readonly topic: string
}

/** The message that an intent was first handled with. */
export interface Intended {
  readonly id: string
  readonly delivery: number | null
  readonly topic: string
}

/** The shared parts of one inbox. */
export interface Parts {
  readonly consumer: string
  readonly options: InboxOptions<SqlTx>
  readonly settings: Settings
  readonly ledger: Ledger<SqlTx>
  readonly store: SqlStore
  readonly runtime: Runtime
  /** One record per message. */
  readonly messages: TransactionalOperation<string, SqlTx>
  /** One record per intent, claimed inside the transaction of the message. */
  readonly intents: TransactionalOperation<null, SqlTx>
  readonly failures: Failures
  readonly letters: DeadLetterBox
  readonly order: Order
  emit(event: InboxEvent): void
  /** The tables are there. */
  ready(): Promise<void>
  now(): Promise<number>
  /** One at a time, in this process. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

/** Messages belong to the consumer, not to their sender's tenant. */
export const ANY_TENANT = '*'

export function identityOf({ consumer, messages }: Parts, key: string) {
  return { tenant: ANY_TENANT, caller: consumer, operation: messages.name, key }
}
