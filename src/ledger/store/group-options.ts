import type { Awaitable } from '../../runtime/runtime.ts'
import type { OnceError } from '../core/errors.ts'

/** How a store commits items together. */
export interface GroupOptions<I, A> {
  /** Flushes under way at once. */
  readonly lanes: number
  /** Up to this many items one flush is cheaper than two. @default 64 */
  readonly splitRows?: number
  /** Commits the items together, and answers in their order. `timeoutMs` is the longest of its callers. */
  flush(items: readonly I[], timeoutMs: number): Awaitable<readonly A[]>
  /**
   * Commits one item before it returns, or throws why the item failed; undefined when the store cannot begin right now, and
   * nothing was written. It is called when nothing waits and nothing is under way.
   */
  flushNow?(item: I): A | undefined
  /** In bytes, roughly. */
  sizeOf(item: I): number
  /** Items of one key are never under way together, and a flush is in the order of its keys. Null for an item without. */
  keyOf?(item: I): string | null
  /** Lower ones go first. */
  priorityOf?(item: I): Priority
  /** The error of an item that failed alone; null when it did not fail. */
  errorOf?(answer: A): unknown
  /** Whether one item may have failed the flush, and nothing was applied: then the flush is halved until it stands alone. */
  isSpoiled(error: unknown): boolean
  /**
   * Whether an open transaction holds the item's row, and nothing was applied: then it is repeated apart from the others,
   * until its deadline.
   */
  isHeld?(error: unknown): boolean
  /**
   * Runs `flush` when the store can begin one; items that arrive until then are part of it. Rejects when the store
   * cannot begin at all, and may give up when nothing is waiting any more. Without it a flush begins at once.
   */
  turn?(flush: () => Promise<void>, isWaiting: () => boolean): Promise<void>
  /** The error of an item whose deadline passed before it was sent. */
  late?(timeoutMs: number): OnceError
}

export type Priority = 0 | 1 | 2
