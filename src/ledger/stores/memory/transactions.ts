import { OnceError } from '../../core/errors.ts'
import type { RecordId } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import { createLife } from '../../store/life.ts'
import type { Session, TransactionCall, Transactions } from '../../store/port.ts'
import type { Savepoints } from '../../store/savepoints.ts'
import { createSavepoints } from '../../store/savepoints.ts'
import type { Core } from './core.ts'
import type { Overlay } from './overlay.ts'
import { createOverlay } from './overlay.ts'
import { decide } from './tables.ts'

/** What an effect holds inside a transaction: a small map of its own that commits with the record, or not at all. */
export interface MemoryTx {
  get(key: string): unknown
  set(key: string, value: unknown): void
  delete(key: string): void
}

/** A transaction that runs or waits for its turn, with the record that it is known to be about. */
interface Twin {
  readonly ids: Set<RecordId>
}

export function createTransactions(core: Core): Transactions<MemoryTx> {
  const { writer, time } = core
  const twins = new Set<Twin>()

  function checkTwin(id: RecordId | null): void {
    if (id === null) return
    for (const twin of twins) {
      if (twin.ids.has(id))
        throw new OnceError('store_busy', 'Another transaction runs for this record right now.', {
          details: { twin: true },
        })
    }
  }

  async function inTurn<T>(work: (session: Session<MemoryTx>) => Promise<T>, twin: Twin): Promise<T> {
    const overlay = createOverlay(core.tables)
    const life = createLife()
    const savepoints = createSavepoints(overlay, life)
    const session = createSession({ core, overlay, savepoints, twin })
    const { promise: tooLong, reject } = Promise.withResolvers<never>()
    // The work may continue after its time is up: its result is dropped then, and its session refuses everything.
    const working = savepoints.outermost(async () => await work(session))
    working.catch(() => undefined)
    const hold = time.setTimer(limits.writerHoldMs, () => {
      const reason = heldTooLong()
      life.end(reason)
      reject(reason)
    })
    try {
      const result = await Promise.race([working, tooLong])
      for (const { before, after } of overlay.commit()) core.watchers.changed(before, after)
      return result
    } finally {
      hold.cancel()
      life.end(usedAfterEnd())
    }
  }

  return {
    run: async (work, call) => {
      core.checkOpen()
      checkTwin(call.refuseTwinOf)
      const twin: Twin = { ids: new Set(call.refuseTwinOf === null ? [] : [call.refuseTwinOf]) }
      twins.add(twin)
      const waitMs = Math.min(call.lockMs, call.timeoutMs)
      try {
        return await writer.run({ short: false, waitMs, late: () => late(call) }, () => inTurn(work, twin))
      } finally {
        twins.delete(twin)
      }
    },
  }
}

function late({ lockMs }: TransactionCall): OnceError {
  return new OnceError('store_busy', `Another transaction held the memory store for more than ${lockMs} ms.`)
}

function heldTooLong(): OnceError {
  return new OnceError('transaction_too_long', `A transaction took more than ${limits.writerHoldMs} ms.`)
}

function usedAfterEnd(): OnceError {
  return new OnceError('transaction_aborted', 'The transaction is over; its session cannot be used any more.')
}

interface SessionParts {
  readonly core: Core
  readonly overlay: Overlay
  readonly savepoints: Savepoints
  readonly twin: Twin
}

function createSession({ core, overlay, savepoints, twin }: SessionParts): Session<MemoryTx> {
  return {
    tx: {
      get: (key) => overlay.get(key, savepoints.depth()),
      set: (key, value) => overlay.set(key, value, savepoints.depth()),
      delete: (key) => overlay.set(key, undefined, savepoints.depth()),
    },
    apply: (request) =>
      savepoints.inTurn(() => {
        twin.ids.add(request.id)
        return decide(core.tables, overlay.records, request, core.time.nowMs())
      }),
    savepoint: (work) => savepoints.savepoint(work),
  }
}
