import type { AppliedWord, OnceError } from '../../core/errors.ts'
import { isOnceError } from '../../core/errors.ts'
import type { Request } from '../../core/request.ts'
import type { Life } from '../../store/life.ts'
import type { Session } from '../../store/port.ts'
import type { Savepoints } from '../../store/savepoints.ts'
import type { SqlTx } from '../../store/sql.ts'
import type { FenceMark } from './claims.ts'
import { beginTurn, decideAlone, endTurn } from './claims.ts'
import type { Clock } from './clock.ts'
import type { Connection } from './connection.ts'
import { busy, isBroken, isBusy, unavailable } from './errors.ts'
import { rolledBackBySqlite } from './life.ts'
import type { Doings } from './twins.ts'

/** Runs a statement and ends the transaction when it cannot continue. The user's own errors pass unchanged. */
export type Guard = <T>(statement: () => T, applied?: AppliedWord) => T

export function createGuard(path: string, { db }: Connection, life: Life): Guard {
  return (statement, applied = 'no') => {
    try {
      return statement()
    } catch (error) {
      const fault = ownFault(path, error, applied)
      if (fault !== null) life.end(fault)
      // Some errors make SQLite roll back by itself: the next statement would run outside of any transaction.
      else if (!db.isTransaction) life.end(rolledBackBySqlite(error))
      throw fault ?? error
    }
  }
}

function ownFault(path: string, error: unknown, applied: AppliedWord): OnceError | null {
  if (isOnceError(error, 'store_unavailable')) return error
  if (isBroken(error)) return unavailable(path, error, applied)
  return isBusy(error) ? busy(path, 0, error) : null
}

export interface SessionParts {
  readonly connection: Connection
  readonly clock: Clock
  readonly fences: FenceMark
  readonly savepoints: Savepoints
  readonly guard: Guard
  readonly doings: Doings
}

export function createSession(parts: SessionParts): Session<SqlTx> {
  const { connection, clock, fences, savepoints, guard, doings } = parts
  const { statements } = connection

  /** By the same code as a group commit. */
  function decideOne<R extends Request>(request: R) {
    doings.ids.add(request.id)
    const turn = beginTurn(connection, clock, fences.least)
    const applied = decideAlone(connection, turn, request)
    if ('error' in applied) throw applied.error
    endTurn(connection, turn)
    // At once, and not at the commit: a fence that a rolled-back effect has seen is never granted to another.
    fences.least = Math.max(fences.least, turn.fence)
    doings.wakesBefore ??= turn.meta.wakes
    doings.woken.push(...turn.woken)
    return applied
  }

  return {
    tx: {
      query: (text, values) => savepoints.inTurn(() => guard(() => statements.query(text, values))),
      inSavepoint: (work) => savepoints.savepoint(work),
    },
    apply: (request) => savepoints.inTurn(() => guard(() => decideOne(request))),
    savepoint: (work) => savepoints.savepoint(work),
  }
}
