import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { RecordView, Tables } from './tables.ts'
import { putRecord } from './tables.ts'

interface Layer {
  readonly records: Map<RecordId, LedgerRecord>
  readonly values: Map<string, unknown>
}

interface Change {
  readonly before: LedgerRecord | null
  readonly after: LedgerRecord
}

/** What a transaction has written so far, over tables that nobody else sees changed until it commits. */
export interface Overlay {
  readonly records: RecordView
  get(key: string): unknown
  /** An undefined value is one that is not there. */
  set(key: string, value: unknown): void
  /** A savepoint: what is written from here on can be undone without the rest. */
  open(): { keep(): void; undo(): void }
  commit(): readonly Change[]
}

export function createOverlay(tables: Tables): Overlay {
  const layers: Layer[] = [createLayer()]
  const top = () => layers.at(-1) as Layer

  function find<V>(key: string, of: (layer: Layer) => Map<string, V>, below: Map<string, V>): V | undefined {
    const layer = layers.findLast((each) => of(each).has(key))
    return layer === undefined ? below.get(key) : of(layer).get(key)
  }

  function open() {
    const mine = createLayer()
    const depth = layers.push(mine) - 1
    // Savepoints that were opened inside this one and never ended share its fate.
    const close = () => layers.splice(depth)
    return {
      keep: () => {
        for (const { records, values } of close()) {
          for (const [id, record] of records) top().records.set(id, record)
          for (const [key, value] of values) top().values.set(key, value)
        }
      },
      undo: () => {
        close()
      },
    }
  }

  function commit(): Change[] {
    const changes: Change[] = []
    for (const { records, values } of layers) {
      for (const [id, after] of records) {
        const before = tables.records.get(id) ?? null
        changes.push({ before, after })
        putRecord(tables, after, before)
      }
      for (const [key, value] of values) {
        if (value === undefined) tables.values.delete(key)
        else tables.values.set(key, value)
      }
    }
    return changes
  }

  return {
    records: {
      get: (id) => find(id, (layer) => layer.records, tables.records) ?? null,
      put: (record) => top().records.set(record.id, record),
    },
    get: (key) => find(key, (layer) => layer.values, tables.values),
    set: (key, value) => top().values.set(key, value),
    open,
    commit,
  }
}

function createLayer(): Layer {
  return { records: new Map(), values: new Map() }
}
