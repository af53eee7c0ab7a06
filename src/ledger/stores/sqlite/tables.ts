import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Call } from '../../store/port.ts'
import type { RecordTables, StoredRow, TableQuery } from '../../store/sql/tables.ts'
import { RUNNING } from '../../store/sql/tables.ts'
import { NOW_SQL } from './connection.ts'
import { sqlite } from './dialect.ts'
import type { Engine } from './engine.ts'

/** Rows that one step of a scan looks at: about two milliseconds, after which the other requests have their turn. */
export const STEP_ROWS = 2_000
/** Rows that one write of the tallies changes: well below the time of a step of upkeep. */
const TALLY_ROWS = 64

const BOOT = 'SELECT boot_fence FROM onceonly_meta'
const BOOTED_AT = 'SELECT anchor_wall FROM onceonly_meta'

export function createTables(engine: Engine): RecordTables {
  return {
    dialect: sqlite,
    records: 'onceonly_records',
    unknowns: 'onceonly_unknowns',
    unknownsKey: 'id',
    tallies: 'onceonly_tallies',
    now: NOW_SQL,
    lastFence: `max((SELECT fence FROM onceonly_meta), coalesce((SELECT max(fence) FROM onceonly_records), 0))`,
    // There is one writer.
    inFlightMs: 0,
    place: { column: 'seq', type: 'bigint' },
    byId: (id) => `r.seq = (SELECT i.seq FROM onceonly_ids AS i WHERE i.id = ${id}) AND r.id = ${id}`,
    // A lease that was granted before the last boot has ended, grace included.
    dueAt: (alias) => `CASE WHEN ${alias}.${RUNNING} AND ${alias}.fence <= (${BOOT})
      THEN min(${alias}.due_at, (${BOOTED_AT}) - ${limits.leaseGraceMs}) ELSE ${alias}.due_at END`,
    stepRows: STEP_ROWS,
    writeRows: TALLY_ROWS,
    countsInSteps: true,
    read: (call, work) => work(readSteps(engine, call)),
    scan: (call, work) => work(readSteps(engine, call)),
    write: (call, work) => {
      const read = readSteps(engine, call)
      return work((text, values = []) => {
        if (/^\s*SELECT/.test(text)) return read(text, values)
        return engine.write('upkeep', call, ({ statements }) => statements.prepared(text).all(...values))
      })
    },
  }
}

/** All on the reader: no question waits for the writer, or makes it wait. Between two steps others have their turn. */
function readSteps(engine: Engine, call: Call): TableQuery {
  const startedMs = performance.now()
  let steps = 0
  return async (text, values = []): Promise<readonly StoredRow[]> => {
    if (steps++ > 0) await new Promise((resolve) => void setImmediate(resolve))
    if (performance.now() - startedMs > call.timeoutMs) throw tooLong(call)
    return await engine.read(call, ({ statements }) => statements.prepared(text).all(...values))
  }
}

function tooLong({ timeoutMs }: Call): OnceError {
  const message = `Looking through the records took longer than ${timeoutMs} ms.`
  return new OnceError('store_unavailable', message, { applied: 'no' })
}
