import { setTimeout as pauseFor } from 'node:timers/promises'
import type { AppliedWord } from '../../core/errors.ts'
import { isOnceError, OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { DecisionOf, Request } from '../../core/request.ts'
import type { Deadline } from '../../store/deadline.ts'
import { createDeadline, inTime } from '../../store/deadline.ts'
import { lostTransaction, noTransaction, noteSql } from '../../store/foreign.ts'
import { inOrmPart, perHandle, sqlApart } from '../../store/foreign-tx.ts'
import type { OrmTransactions } from '../../store/orm.ts'
import type {
  AdoptedTransactions,
  AppliedDecision,
  ForeignTransactions,
  Session,
  TransactionCall,
} from '../../store/port.ts'
import { inPart } from '../../store/port.ts'
import { TOUCH_META } from './clock.ts'
import { busy, isBroken, isBusy, unavailable } from './errors.ts'
import { decideBy } from './foreign-decide.ts'
import { checkSameFile, takeWriter } from './foreign-lock.ts'
import type { ForeignTx } from './foreign-tx.ts'
import { createForeignTx, isGone, sqliteErrorIn } from './foreign-tx.ts'
import { heldTooLong, usedAfterEnd } from './life.ts'
import type { TransactionParts } from './transactions.ts'
import type { Doings } from './twins.ts'

/** How long an effect that is out of time is waited for before its transaction is rolled back, in ms. */
const LATE_EFFECT_MS = 5_000
const FULL_SYNC = 2
const CALL = { timeoutMs: limits.storeCallMs }

/**
 * Transactions that an ORM opens and ends, on a connection of its own to our file. SQLite has one writer, so the order is
 * always the same: the ORM's connection, then our queue for the writer, then the lock of the file.
 */
export function createForeign(parts: TransactionParts): ForeignTransactions {
  return { dialect: 'sqlite', on: (orm) => createAdopted(parts, orm) }
}

const txOfHandle = perHandle<ForeignTx>()

/** One run of an ORM's transaction. */
interface Ground {
  readonly doings: Doings
  /** Until when the transaction has to begin. */
  readonly deadline: Deadline
  /** `maybe` from the moment in which the ORM may send COMMIT. */
  applied: AppliedWord
  /** What the work threw, whatever the ORM makes of it; null when it did not throw. */
  failure: { readonly error: unknown } | null
  begun: PromiseWithResolvers<void>
  over: PromiseWithResolvers<void>
  /** The ORM's connection does not wait for the disk at each commit. */
  lazySync: boolean
}

function createAdopted<Handle>(
  { engine, watchers, fences, twins, holdMs }: TransactionParts,
  orm: OrmTransactions<Handle>,
): AdoptedTransactions<Handle> {
  const same = { orm: orm.name, checked: false }

  const txOf = (handle: Handle) => txOfHandle(handle, () => createForeignTx(orm, handle, engine.clock))

  function sessionOf(handle: Handle, tx: ForeignTx, doings: Doings): Session<Handle> {
    async function apply<R extends Request>(request: R): Promise<AppliedDecision<DecisionOf<R>>> {
      doings.ids.add(request.id)
      try {
        return await tx.together(async (send) => {
          const { applied, turn } = await decideBy(send, engine.clock, fences.least, request)
          // At once, and not at the commit: a fence that a rolled-back effect has seen is never granted to another.
          fences.least = Math.max(fences.least, turn.fence)
          doings.wakesBefore ??= turn.meta.wakes
          doings.woken.push(...turn.woken)
          return applied
        })
      } catch (error) {
        throw storeFault(error, 'no') ?? error
      }
    }
    const part = <T>(work: (inner: Session<Handle>) => Promise<T>): Promise<T> => {
      const innerOf = (inner: Handle) => {
        const innerTx = txOf(inner)
        const end = () => {
          for (const topic of innerTx.woken) tx.woken.add(topic)
          innerTx.close(usedAfterEnd)
        }
        return { tx: innerTx, session: sessionOf(inner, innerTx, doings), end }
      }
      return inOrmPart(orm, { handle, tx, session }, innerOf, work)
    }
    const session: Session<Handle> = { tx: handle, sql: tx.sql, apply, savepoint: (work) => part(() => work()), part }
    return session
  }

  function storeFault(error: unknown, applied: AppliedWord): OnceError | null {
    if (isOnceError(error)) return error
    const cause = sqliteErrorIn(error)
    if (isGone(error)) return lostTransaction(error)
    if (isBusy(cause)) return busy(engine.path, 0, error)
    return isBroken(cause) ? unavailable(engine.path, error, applied) : null
  }

  async function runIn<T>(handle: Handle, ground: Ground, work: (session: Session<Handle>) => Promise<T>): Promise<T> {
    const tx = txOf(handle)
    noteSql(handle, tx.sql)
    const holding = createDeadline(holdMs)
    try {
      ground.lazySync = await tx.together(async (send) => {
        await takeWriter(send, engine, ground.deadline, same)
        await checkSameFile(send, engine, same)
        const [row] = await send('PRAGMA synchronous')
        return Number(row?.['synchronous']) < FULL_SYNC
      })
      const working = tx.outermost(() => work(sessionOf(handle, tx, ground.doings)))
      const result = await inTime(working, holding, () => heldTooLong(holdMs)).catch(async (error: unknown) => {
        // Some handles can still be used after their transaction, and what they write would commit by itself.
        if (isOnceError(error, 'transaction_too_long')) await Promise.race([working.catch(ignore), lateEffect()])
        throw error
      })
      // A statement that the work did not wait for still belongs to it.
      await tx.idle()
      // The effect may have taken seconds.
      engine.checkFile()
      ground.applied = 'maybe'
      return result
    } catch (error) {
      const fault = tx.lost ?? storeFault(error, 'no') ?? error
      ground.failure = { error: fault }
      throw fault
    } finally {
      holding.end()
      tx.close(usedAfterEnd)
      for (const topic of tx.woken) ground.doings.topics.add(topic)
    }
  }

  /** The ORM's connection is ours now; then our queue, so that no other writer of this process is in its way. */
  async function enter<T>(handle: Handle, ground: Ground, work: (session: Session<Handle>) => Promise<T>): Promise<T> {
    if (ground.deadline.remainingMs() === 0) throw late(ground)
    const turn = Promise.withResolvers<void>()
    engine
      .lend(ground.deadline.remainingMs(), async () => {
        turn.resolve()
        await ground.over.promise
      })
      .catch(turn.reject)
    await turn.promise
    ground.begun.resolve()
    return await runIn(handle, ground, work)
  }

  function late({ deadline }: Ground): OnceError {
    const text = `${orm.name} had no connection to ${engine.path} free for ${Math.round(deadline.timeoutMs)} ms.`
    const next = 'Inside a transaction of your own, call `within` with its handle instead of `run`.'
    return new OnceError('store_busy', text, { applied: 'no', next })
  }

  async function run<T>(ground: Ground, work: (session: Session<Handle>) => Promise<T>): Promise<T> {
    const { deadline, doings, begun, over } = ground
    let inside: Promise<T> | null = null
    const opening = orm.open((handle) => (inside = enter(handle, ground, work)), {
      timeoutMs: deadline.timeoutMs + holdMs,
    })
    try {
      await inTime(Promise.race([begun.promise, opening]), deadline, () => late(ground))
      await opening
      // An ORM whose transaction the effect ended may answer at once, and with something else.
      const result = await (inside ?? Promise.reject(lostTransaction()))
      over.resolve()
      if (ground.lazySync) await reachDisk()
      committed(doings)
      return result
    } catch (error) {
      opening.catch(ignore)
      if (ground.failure !== null) throw ground.failure.error
      // What the user's deferred constraints say at the end is the user's to read.
      throw storeFault(error, ground.applied) ?? error
    } finally {
      over.resolve()
    }
  }

  /** One more commit of ours, which waits for the disk, and for everything that was written to the log before. */
  async function reachDisk(): Promise<void> {
    await engine.write('batch', CALL, ({ statements }) => void statements.prepared(TOUCH_META).run())
  }

  function committed({ wakesBefore, woken, topics }: Doings): void {
    if (wakesBefore !== null) watchers.committed(wakesBefore, wakesBefore + woken.length, woken)
    engine.noteWoken(topics)
  }

  async function within<T>(handle: Handle, call: TransactionCall, work: (session: Session<Handle>) => Promise<T>) {
    const outer = txOf(handle)
    const deadline = createDeadline(Math.min(call.lockMs, orm.claimWaitMs ?? call.lockMs))
    const doings = twins.enter(call.refuseTwinOf)
    try {
      return await inPart(sessionOf(handle, outer, doings), async (session) => {
        await txOf(session.tx).together(async (send) => {
          await takeWriter(send, engine, deadline, same)
          await checkSameFile(send, engine, same)
        })
        return await work(session)
      })
    } catch (error) {
      throw outer.lost ?? storeFault(error, 'no') ?? error
    } finally {
      deadline.end()
      twins.leave(doings)
    }
  }

  return {
    run: async (work, call) => {
      const doings = twins.enter(call.refuseTwinOf)
      const deadline = createDeadline(Math.min(call.lockMs, call.timeoutMs))
      const [begun, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      try {
        // Makes the tables where there are none.
        await engine.read(call, ignore)
        const state = { applied: 'no' as const, failure: null, lazySync: false }
        return await run({ doings, deadline, begun, over, ...state }, work)
      } finally {
        deadline.end()
        twins.leave(doings)
      }
    },
    within: async (handle, work, call) => {
      if (!orm.isTransaction(handle)) throw noTransaction(orm.name)
      await engine.read({ timeoutMs: Math.min(call.timeoutMs, limits.besideTransactionMs) }, ignore)
      return await txOf(handle).apart(() => within(handle, call, work))
    },
    sqlOf: (handle) => sqlApart(orm, handle, txOf),
  }
}

function ignore(): void {}

function lateEffect(): Promise<void> {
  return pauseFor(LATE_EFFECT_MS, undefined, { ref: false })
}
