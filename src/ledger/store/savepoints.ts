import { AsyncLocalStorage } from 'node:async_hooks'
import { OnceError } from '../core/errors.ts'
import type { Life } from './life.ts'

/**
 * Savepoints on one connection are a stack, but an effect may start several promises at once. A statement outside the
 * innermost savepoint waits until it has ended: else it would be undone together with that savepoint.
 */
export interface Savepoints {
  /** Runs the effect outside of every savepoint, and ends when those that it opened have ended. */
  outermost<T>(work: () => Promise<T>): Promise<T>
  /** For calls that code outside of every savepoint may make at the same time: they wait for each other. */
  apart<T>(work: () => Promise<T>): Promise<T>
  /** A statement, once the savepoint that it was called in is the innermost. */
  inTurn<T>(work: (scope: StatementParts) => T | Promise<T>): Promise<T>
  /** How many savepoints are around the caller: for a store that keeps the writes of each apart and need not wait. */
  depth(): number
  /** Undoes what the work wrote when it throws, and rethrows. */
  savepoint<T>(work: () => Promise<T>): Promise<T>
}

/**
 * Parts that statements opened, inside of one savepoint: they end with it, and a statement ends none that it did not
 * see opened. The innermost is the last.
 */
export type StatementParts = StatementPart[]

export interface StatementPart {
  /** The name of the savepoint at the server. */
  readonly at: string
  /** The name that the statement gave it; null for a transaction. */
  readonly name: string | null
}

/** How a store does it. Each takes effect before whatever is sent after it was called. */
export interface SavepointSteps {
  open(): void | Promise<void>
  /** `depth` is 1 for a savepoint inside of no other. */
  keep(depth: number): void | Promise<void>
  undo(): void | Promise<void>
}

interface Scope {
  readonly of: Life
  readonly depth: number
  open: boolean
  readonly parts: StatementParts
  /** Settles when the savepoint that was opened directly inside this one has ended. */
  inner: Promise<void> | null
}

/** Distinguishes a statement inside a savepoint from one that merely runs at the same time. */
const scopes = new AsyncLocalStorage<Scope>()

export function createSavepoints(steps: SavepointSteps, life: Life): Savepoints {
  const root: Scope = { of: life, depth: 0, open: true, parts: [], inner: null }
  let innermost = root

  /** Code that has lost its asynchronous context acts on the innermost savepoint. */
  function here(): Scope {
    const scope = scopes.getStore()
    return scope?.of === life ? scope : innermost
  }

  function checkOpen(scope: Scope): void {
    life.check()
    if (!scope.open)
      throw new OnceError('transaction_aborted', 'This part of the transaction is over; await every statement.')
  }

  /** Throws when waiting is of no use any more. */
  function mustWait(scope: Scope): boolean {
    checkOpen(scope)
    return scope.inner !== null
  }

  async function quiet(scope: Scope): Promise<void> {
    while (scope.inner !== null && !life.isOver()) await Promise.race([scope.inner, life.ended])
  }

  /** The step is synchronous: nothing may run between the last check and the statement. */
  function close(scope: Scope, parent: Scope, keep: boolean): void | Promise<void> {
    scope.open = false
    innermost = parent
    if (keep) life.check()
    if (life.isOver()) return undefined
    return keep ? steps.keep(scope.depth) : steps.undo()
  }

  async function inside<T>(scope: Scope, parent: Scope, work: () => Promise<T>): Promise<T> {
    let result: T
    try {
      result = await scopes.run(scope, work)
      await quiet(scope)
      checkEnded(scope)
    } catch (error) {
      await quiet(scope)
      await close(scope, parent, false)
      throw error
    }
    await close(scope, parent, true)
    return result
  }

  return {
    outermost: async (work) => {
      const result = await scopes.run(root, work)
      await quiet(root)
      checkEnded(root)
      root.open = false
      return result
    },
    apart: (work) => (scopes.getStore()?.of === life ? work() : scopes.run(root, work)),
    inTurn: async (work) => {
      const scope = here()
      while (mustWait(scope)) await Promise.race([scope.inner, life.ended])
      return work(scope.parts)
    },
    depth: () => {
      const scope = here()
      checkOpen(scope)
      return scope.depth
    },
    savepoint: async (work) => {
      const parent = here()
      while (mustWait(parent)) await Promise.race([parent.inner, life.ended])
      const { promise, resolve } = Promise.withResolvers<void>()
      const scope: Scope = { of: life, depth: parent.depth + 1, open: true, parts: [], inner: null }
      // Before the step itself, which may take a while: statements that come meanwhile wait.
      parent.inner = promise
      try {
        await steps.open()
        innermost = scope
        return await inside(scope, parent, work)
      } finally {
        parent.inner = null
        resolve()
      }
    },
  }
}

/** What a transaction wrote that was begun and not committed would be undone anywhere else, so it is here. */
function checkEnded({ parts }: Scope): void {
  if (parts.every(({ name }) => name !== null)) return
  throw new OnceError('transaction_aborted', 'A nested transaction was begun, and neither committed nor rolled back.')
}
