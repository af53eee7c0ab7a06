import { isOnceError } from '../../core/errors.ts'
import type { Fence, RecordId } from '../../core/identity.ts'
import type { Request } from '../../core/request.ts'
import type { Applied, Call, Claims } from '../../store/port.ts'
import type { Connection } from './connection.ts'
import type { Turn } from './decide.ts'
import { beginTurn, decide, endTurn } from './decide.ts'
import type { Engine } from './engine.ts'
import { isBroken, isBusy, refusedRow } from './errors.ts'
import { nowOf } from './meta.ts'
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

type Decide = <R extends Request>(writer: Connection, turn: Turn, request: R) => Applied<R>

interface Batch<R extends Request> {
  readonly turn: Turn
  readonly answers: readonly Applied<R>[]
}

export function createClaims({ engine, watchers, fences }: ClaimsParts): Claims {
  /** One write transaction and one fsync for the whole batch. */
  function commit<R extends Request>(requests: readonly R[], call: Call, each: Decide): Promise<Batch<R>> {
    return engine.write('batch', call, (writer) => {
      const turn = beginTurn(writer, engine.time, fences.least)
      const answers = requests.map((request) => each(writer, turn, request))
      endTurn(writer, turn)
      writer.checkpoints.expect(requests.length)
      return { turn, answers }
    })
  }

  function committed<R extends Request>({ turn, answers }: Batch<R>): readonly Applied<R>[] {
    const { meta, woken } = turn
    fences.least = Math.max(fences.least, turn.fence)
    watchers.committed(meta.wakes, meta.wakes + (woken.length > 0 ? 1 : 0), woken)
    return answers
  }

  return {
    // A batch holds the only writer and answers within one turn of the event loop: a second lane would only wait.
    lanes: 1,
    apply: async (requests, call) => {
      try {
        return committed(await commit(requests, call, decide))
      } catch (error) {
        if (!isRowFault(error)) throw error
        // Nothing was written. Again, with a savepoint around each row, so that only the bad ones fail.
        return committed(await commit(requests, call, decideAlone))
      }
    },
    read: (ids, call) =>
      engine.read(call, (reader) => {
        const meta = reader.meta.read()
        return { now: nowOf(meta, engine.time), records: ids.map((id: RecordId) => reader.records.read(id, meta)) }
      }),
    watch: (wake) => watchers.watch(wake),
  }
}

/** The row or its values are at fault, not the file, and not a lock. */
function isRowFault(error: unknown): boolean {
  return isOnceError(error) ? error.code === 'row_refused' : !isBroken(error) && !isBusy(error)
}

/** One request whose failure undoes itself and nothing else. */
export function decideAlone<R extends Request>(writer: Connection, turn: Turn, request: R): Applied<R> {
  const { statements } = writer
  statements.prepared('SAVEPOINT one_row').run()
  try {
    const applied = decide(writer, turn, request)
    statements.prepared('RELEASE one_row').run()
    return applied
  } catch (error) {
    if (!isRowFault(error)) throw error
    statements.prepared('ROLLBACK TO one_row').run()
    statements.prepared('RELEASE one_row').run()
    return { error: isOnceError(error) ? error : refusedRow('SQLite cannot hold this row.', error) }
  }
}
