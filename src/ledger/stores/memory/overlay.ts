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

/**
 * What a transaction has written so far, over tables that change for other readers only at its commit: one layer for the
 * transaction and one for each savepoint, the innermost last. `depth` counts the savepoints around a caller.
 */
export interface Overlay {
  /** As the innermost savepoint sees and writes them. */
  readonly records: RecordView
  get(key: string, depth: number): unknown
  /** An undefined value is one that is not there. */
  set(key: string, value: unknown, depth: number): void
  /** A savepoint: what is written in it can be undone without the rest. */
  open(): void
  /** Ends the innermost savepoint. */
  keep(): void
  undo(): void
  commit(): readonly Change[]
}

export function createOverlay(tables: Tables): Overlay {
  const layers: Layer[] = [createLayer()]
  const top = () => layers.at(-1) as Layer

  function find<V>(key: string, of: (layer: Layer) => Map<string, V>, below: Map<string, V>, depth: number) {
    for (let at = depth; at >= 0; at--) {
      const layer = layers[at]
      if (layer !== undefined && of(layer).has(key)) return of(layer).get(key)
    }
    return below.get(key)
  }

  function keep(): void {
    const { records, values } = layers.pop() as Layer
    for (const [id, record] of records) top().records.set(id, record)
    for (const [key, value] of values) top().values.set(key, value)
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
      get: (id) => find(id, (layer) => layer.records, tables.records, layers.length - 1) ?? null,
      put: (record) => top().records.set(record.id, record),
    },
    get: (key, depth) => find(key, (layer) => layer.values, tables.values, depth),
    set: (key, value, depth) => void layers[depth]?.values.set(key, value),
    open: () => void layers.push(createLayer()),
    keep,
    undo: () => void layers.pop(),
    commit,
  }
}

function createLayer(): Layer {
  return { records: new Map(), values: new Map() }
}
