import { AsyncLocalStorage } from 'node:async_hooks'
import { createLife } from '../../store/life.ts'
import type { Session, Transactions } from '../../store/port.ts'
import type { SavepointSteps } from '../../store/savepoints.ts'
import { createSavepoints } from '../../store/savepoints.ts'
import type { SqlTx } from '../../store/sql.ts'
import type { FenceMark } from './claims.ts'
import type { Connection } from './connection.ts'
import type { Engine } from './engine.ts'
import { heldTooLong, usedAfterEnd } from './life.ts'
import { createGuard, createSession } from './session.ts'
import type { Doings, Twins } from './twins.ts'
import type { Watchers } from './watch.ts'

export interface TransactionParts {
  readonly engine: Engine
  readonly watchers: Watchers
  readonly fences: FenceMark
  readonly twins: Twins
  readonly holdMs: number
}

export function createTransactions(parts: TransactionParts): Transactions<SqlTx> {
  return {
    run: async (work, { lockMs, timeoutMs, refuseTwinOf }) => {
      const doings = parts.twins.enter(refuseTwinOf)
      // The queue calls the work from another caller's async context: restore its own.
      const inOwnContext = AsyncLocalStorage.snapshot()
      // The one writer is the row lock of every twin, so both bounds are bounds on waiting for it. The work itself is
      // bounded by how long it may hold the writer.
      const waitMs = Math.min(lockMs, timeoutMs)
      try {
        return await parts.engine.hold(waitMs, (connection) =>
          inOwnContext(() => inTransaction(parts, connection, doings, work)),
        )
      } finally {
        parts.twins.leave(doings)
      }
    },
  }
}

/** `run` ends the life when the statement fails. */
function stepsBy(run: (statement: string) => void): SavepointSteps {
  return {
    open: () => run('SAVEPOINT inner_work'),
    keep: () => run('RELEASE inner_work'),
    undo: () => {
      run('ROLLBACK TO inner_work')
      run('RELEASE inner_work')
    },
  }
}

/** The caller has begun the transaction, and rolls it back unless it was committed here. */
async function inTransaction<T>(
  { engine, watchers, fences, holdMs }: TransactionParts,
  connection: Connection,
  doings: Doings,
  work: (session: Session<SqlTx>) => Promise<T>,
): Promise<T> {
  const life = createLife()
  const guard = createGuard(engine.path, connection, life)
  const run = (statement: string) => void guard(() => connection.statements.prepared(statement).run())
  const savepoints = createSavepoints(stepsBy(run), life)
  const session = createSession({ connection, clock: engine.clock, fences, savepoints, guard, doings })
  const { promise: tooLong, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    // No statement is under way: they are all synchronous. From here on the session refuses, and the writer is free.
    const reason = heldTooLong(holdMs)
    life.end(reason)
    reject(reason)
  }, holdMs)
  try {
    const working = savepoints.outermost(async () => await work(session))
    // It may continue after its time is up: its result is dropped then.
    working.catch(() => undefined)
    const result = await Promise.race([working, tooLong])
    life.check()
    const wakesAfter = doings.woken.length > 0 ? guard(() => connection.meta.read().wakes) : doings.wakesBefore
    // The effect may have taken seconds.
    engine.checkFile()
    guard(() => connection.statements.prepared('COMMIT').run(), 'maybe')
    if (doings.wakesBefore !== null) watchers.committed(doings.wakesBefore, wakesAfter ?? 0, doings.woken)
    return result
  } finally {
    clearTimeout(timer)
    life.end(usedAfterEnd)
  }
}
