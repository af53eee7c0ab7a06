import { OnceError } from '../../ledger/core/errors.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import { OUTBOX_ROOM, outboxTables } from './tables.ts'

export interface Tables {
  readonly ready: boolean
  /** The tables are being made right now. */
  readonly underWay: boolean
  /** Again when it failed: the store may only have been away. */
  prepare(): Promise<void>
}

export function createTables(store: SqlStore): Tables {
  if (store?.sql === undefined || store.transactions === undefined) {
    throw new OnceError('bad_option', 'The outbox needs a `store` that speaks SQL: its rows commit with your own.')
  }
  let ready = false
  let preparing: Promise<void> | null = null
  return {
    get ready() {
      return ready
    },
    get underWay() {
      return preparing !== null && !ready
    },
    prepare() {
      preparing ??= store.sql.migrate(OUTBOX_ROOM, outboxTables).then(
        () => {
          ready = true
        },
        (error: unknown) => {
          preparing = null
          throw error
        },
      )
      return preparing
    },
  }
}
