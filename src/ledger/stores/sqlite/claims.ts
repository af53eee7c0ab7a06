import type { OnceError } from '../../core/errors.ts'
import { isOnceError } from '../../core/errors.ts'
import type { Fence, RecordId } from '../../core/identity.ts'
import type { Request } from '../../core/request.ts'
import type { Applied } from '../../store/port.ts'
import type { GroupedClaims } from '../../store/request-group.ts'
import type { Connection } from './connection.ts'
import type { Turn } from './decide.ts'
import { beginTurn, decide, endTurn } from './decide.ts'
import type { Engine } from './engine.ts'
import { isBroken, isBusy, refusedRow } from './errors.ts'
import type { Decider } from './group.ts'
import { nowOf } from './meta.ts'
import { inSavepoint } from './savepoint.ts'
import type { Watchers } from './watch.ts'

export interface ClaimsParts {
  readonly engine: Engine
  readonly watchers: Watchers
  readonly fences: FenceMark
}

/** The largest fence that this process has handed out, also in transactions that were rolled back. */
export interface FenceMark {
  least: Fence
}

export function createClaims({ engine, watchers, fences }: ClaimsParts): GroupedClaims {
  const decider = createDecider({ engine, watchers, fences })
  return {
    apply: (request, call) => engine.apply(request, call, decider),
    onFlush: (listener) => engine.onRequests(listener),
    read: (ids, call) =>
      engine.read(call, (reader) => {
        const meta = reader.meta.read()
        return { now: nowOf(meta, engine.time), records: ids.map((id: RecordId) => reader.records.read(id, meta)) }
      }),
    watch: (wake) => watchers.watch(wake),
  }
}

/** Decides the requests of one flush by one reading of the clock and the fences. */
function createDecider({ engine, watchers, fences }: ClaimsParts): Decider {
  let last: Turn | null = null

  function decideAll(writer: Connection, requests: readonly Request[], each: typeof decideAlone): readonly Applied[] {
    const turn = beginTurn(writer, engine.time, fences.least)
    const answers = requests.map((request) => each(writer, turn, request))
    endTurn(writer, turn)
    last = turn
    return answers
  }

  return {
    settleAlone: (writer, request) => {
      if (last === null) return null
      const now = nowOf(last.meta, engine.time)
      const step = writer.settle.tryAlone(request, { now, fence: fences.least + 1 }, last.meta)
      if (step === null) return null
      writer.checkpoints.expect(1)
      return { decision: step.decision, record: step.record, now }
    },
    decide: (writer, requests) => {
      writer.checkpoints.expect(requests.length)
      try {
        return decideAll(writer, requests, decide)
      } catch (error) {
        if (!isRowFault(error)) throw error
        // Again, with a savepoint around each row, so that only the bad ones fail. Not at first: within a savepoint
        // SQLite copies every page that it changes, which is a third of the time of a request.
        if (writer.db.isTransaction) writer.statements.prepared('ROLLBACK').run()
        writer.begin()
        return decideAll(writer, requests, decideAlone)
      }
    },
    committed: () => {
      if (last === null) return
      const { meta, woken, fence } = last
      fences.least = Math.max(fences.least, fence)
      watchers.committed(meta.wakes, meta.wakes + (woken.length > 0 ? 1 : 0), woken)
    },
  }
}

/** The row or its values are at fault, not the file, and not a lock. */
function isRowFault(error: unknown): boolean {
  return isOnceError(error) ? error.code === 'row_refused' : !isBroken(error) && !isBusy(error)
}

/** One request whose failure undoes itself and nothing else. */
export function decideAlone<R extends Request>(writer: Connection, turn: Turn, request: R): Applied<R> {
  const applied = inSavepoint(writer, isRowFault, () => decide(writer, turn, request))
  return 'error' in applied ? { error: refusalOf(applied.error) } : applied.value
}

function refusalOf(error: unknown): OnceError {
  return isOnceError(error) ? error : refusedRow('SQLite cannot hold this row.', error)
}
