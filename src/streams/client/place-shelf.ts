/** What one write changes: all of it, or nothing. */
export interface ShelfChanges {
  readonly put?: Readonly<Record<string, unknown>>
  readonly remove?: readonly string[]
}

/**
 * A few small JSON values under names, which survive a restart of the client. One client has one shelf and is its only
 * writer.
 */
export interface Shelf {
  /** Everything that is kept, as the last write left it. */
  load(): Promise<ReadonlyMap<string, unknown>>
  /** Durable when it returns. Writes take effect in the order of the calls. */
  write(changes: ShelfChanges): Promise<void>
  /** Where the shelf has transactions: the work and its writes are kept together, or not at all. */
  atomically?(work: (write: Shelf['write']) => Promise<void>): Promise<void>
  /** Waits for writes under way, then closes. */
  stop(): Promise<void>
}

export function applyChanges(kept: Map<string, unknown>, { put = {}, remove = [] }: ShelfChanges): void {
  for (const name of remove) kept.delete(name)
  for (const [name, value] of Object.entries(put)) kept.set(name, value)
}
