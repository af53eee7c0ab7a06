/** What one write changes: all of it, or nothing. */
export interface Changes {
  readonly put?: Readonly<Record<string, unknown>>
  readonly remove?: readonly string[]
}

/**
 * A few small JSON values under names, which survive a restart of the client. One client is their only
 * writer.
 */
export interface KeyValues {
  /** Everything that is kept, as the last write left it. */
  load(): Promise<ReadonlyMap<string, unknown>>
  /** Durable when it returns. Writes take effect in the order of the calls. */
  write(changes: Changes): Promise<void>
  /** Where transactions exist: the work and its writes are kept together, or not at all. */
  atomically?(work: (write: KeyValues['write']) => Promise<void>): Promise<void>
  /** Waits for writes under way, then closes. */
  stop(): Promise<void>
}

export function applyChanges(kept: Map<string, unknown>, { put = {}, remove = [] }: Changes): void {
  for (const name of remove) kept.delete(name)
  for (const [name, value] of Object.entries(put)) kept.set(name, value)
}
