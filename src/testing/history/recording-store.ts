import { isOnceError } from '../../ledger/core/errors.ts'
import type { Request } from '../../ledger/core/request.ts'
import type { AppliedDecision, Claims, Session, Store, Transactions } from '../../ledger/store/port.ts'
import type { HistoryEvent, Result } from './event.ts'

export interface RecordingOptions {
  /** The calling process: one name per operating-system process, or per simulated one. */
  readonly process: string
  /** A clock that all recorded processes share. @default the machine's monotonic one, in microseconds */
  readonly clock?: () => number
  /** Called with every request once its answer is there. */
  write(event: HistoryEvent): void
}

/**
 * A store that writes down every request and its answer, for `checkHistory`. Nothing else about it changes.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { memoryStore } from 'onceonly/memory'
 * import { checkHistory, createRecordingStore, type HistoryEvent } from 'onceonly/testing'
 *
 * const events: HistoryEvent[] = []
 * const store = createRecordingStore(memoryStore(), { process: 'a', write: (event) => void events.push(event) })
 * const once = createLedger({ store, background: false })
 * console.log(checkHistory(events).fits)
 * ```
 */
export function createRecordingStore<S extends Store>(store: S, options: RecordingOptions): S {
  const clock = options.clock ?? (() => Number(process.hrtime.bigint() / 1_000n))
  const note = (request: Request, startedAt: number, result: Result) => {
    options.write({ process: options.process, request, startedAt, endedAt: clock(), result })
  }
  const recorded = { ...store, claims: recordClaims(store.claims, clock, note) }
  return store.transactions === undefined
    ? recorded
    : { ...recorded, transactions: recordTransactions(store.transactions, clock, note) }
}

type Note = (request: Request, startedAt: number, result: Result) => void

function recordClaims(claims: Claims, clock: () => number, note: Note): Claims {
  return {
    read: (ids, call) => claims.read(ids, call),
    watch: (wake) => claims.watch(wake),
    apply: async (request, call) => {
      const startedAt = clock()
      try {
        const applied = await claims.apply(request, call)
        note(request, startedAt, resultOf(applied))
        return applied
      } catch (error) {
        note(request, startedAt, failureOf(error))
        throw error
      }
    },
  }
}

function resultOf({ decision, now }: AppliedDecision): Result {
  return { kind: 'ok', decision, now }
}

function failureOf(error: unknown): Result {
  return isOnceError(error) && error.applied === 'no' ? { kind: 'fail' } : { kind: 'info' }
}

/** What a transaction decided counts from its commit on, and only then. */
function recordTransactions<Tx>(transactions: Transactions<Tx>, clock: () => number, note: Note): Transactions<Tx> {
  return {
    run: async (work, call) => {
      const made: { request: Request; startedAt: number; result: Result }[] = []
      const recorded = (session: Session<Tx>): Session<Tx> => ({
        tx: session.tx,
        savepoint: async (inner) => {
          const before = made.length
          try {
            return await session.savepoint(inner)
          } catch (error) {
            made.length = before
            throw error
          }
        },
        apply: async (request) => {
          const startedAt = clock()
          const applied = await session.apply(request)
          made.push({ request, startedAt, result: resultOf(applied) })
          return applied
        },
      })
      try {
        const result = await transactions.run((session) => work(recorded(session)), call)
        for (const each of made) note(each.request, each.startedAt, each.result)
        return result
      } catch (error) {
        const inDoubt = isOnceError(error) && error.applied === 'maybe'
        if (inDoubt) for (const each of made) note(each.request, each.startedAt, { kind: 'info' })
        throw error
      }
    },
  }
}
