import type { SqlStore } from '../../ledger/store/port.ts'
import type { WingTables } from '../../ledger/store/wing-tables.ts'
import { createWingTables } from '../../ledger/store/wing-tables.ts'
import { STREAM_ROOM, streamTables } from './sql-tables.ts'

/** The tables of streams in a store: logs, the final order, and the places of clients. */
export function openStreamTables(store: SqlStore): WingTables {
  return createWingTables(store, STREAM_ROOM, streamTables)
}
