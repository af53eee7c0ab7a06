import { OnceError } from '../../core/errors.ts'
import type { RecordId } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import type { Session, TransactionCall, Transactions } from '../../store/port.ts'
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
    // The work may go on after its time is up: nobody waits for it then, and its session refuses everything.
    const working = (async () => await work(createSession({ core, overlay, life, twin })))()
    working.catch(() => undefined)
    const hold = time.setTimer(limits.writerHoldMs, () => life.expire())
    try {
      const result = await Promise.race([working, life.expired])
      for (const { before, after } of overlay.commit()) core.watchers.changed(before, after)
      return result
    } finally {
      hold.cancel()
      life.end()
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
        return await writer.run({ short: false, rows: 1, waitMs, late: () => late(call) }, () => inTurn(work, twin))
      } finally {
        twins.delete(twin)
      }
    },
  }
}

function late({ lockMs }: TransactionCall): OnceError {
  return new OnceError('store_busy', `Another transaction held the memory store for more than ${lockMs} ms.`)
}

interface Life {
  /** Throws once the transaction is over, for whatever reason. */
  check(): void
  expire(): void
  /** Rejects when the transaction held the writer for too long. */
  readonly expired: Promise<never>
  end(): void
}

function createLife(): Life {
  let over: OnceError | null = null
  const { promise: expired, reject } = Promise.withResolvers<never>()
  return {
    check: () => {
      if (over !== null) throw over
    },
    expire: () => {
      over = new OnceError('transaction_too_long', `A transaction took more than ${limits.writerHoldMs} ms.`)
      reject(over)
    },
    expired,
    end: () => {
      over ??= new OnceError('transaction_aborted', 'The transaction is over; its session cannot be used any more.')
    },
  }
}

interface SessionParts {
  readonly core: Core
  readonly overlay: Overlay
  readonly life: Life
  readonly twin: Twin
}

function createSession({ core, overlay, life, twin }: SessionParts): Session<MemoryTx> {
  return {
    tx: {
      get: (key) => {
        life.check()
        return overlay.get(key)
      },
      set: (key, value) => {
        life.check()
        overlay.set(key, value)
      },
      delete: (key) => {
        life.check()
        overlay.set(key, undefined)
      },
    },
    apply: async (request) => {
      life.check()
      twin.ids.add(request.id)
      return decide(core.tables, overlay.records, request, core.time.nowMs())
    },
    savepoint: async (work) => {
      life.check()
      const savepoint = overlay.open()
      try {
        const result = await work()
        life.check()
        savepoint.keep()
        return result
      } catch (error) {
        savepoint.undo()
        throw error
      }
    },
  }
}
