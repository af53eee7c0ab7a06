import { OnceError } from '../../core/errors.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Call, Claims } from '../../store/port.ts'
import type { Core } from './core.ts'
import type { RecordView } from './tables.ts'
import { decide, putRecord } from './tables.ts'

export function createClaims(core: Core): Claims {
  const { tables, time, writer, watchers } = core
  const view: RecordView = {
    get: (id) => tables.records.get(id) ?? null,
    put: (record, before) => {
      putRecord(tables, record, before)
      watchers.changed(before, record)
    },
  }

  return {
    apply: (request, call) => {
      core.checkOpen()
      // No transaction is open, so there is no turn to wait for: deciding ends before anything else can begin.
      if (writer.isFree()) return decide(tables, view, request, time.nowMs())
      const turn = { short: true, waitMs: call.timeoutMs, late: () => late(call) }
      return writer.run(turn, () => decide(tables, view, request, time.nowMs()))
    },
    read: async (ids) => {
      core.checkOpen()
      const records = ids.map((id): LedgerRecord | null => view.get(id))
      return { now: time.nowMs(), records }
    },
    watch: (wake) => watchers.watch(wake),
  }
}

function late({ timeoutMs }: Call): OnceError {
  const message = `An open transaction held the memory store for more than ${timeoutMs} ms; nothing was written.`
  return new OnceError('store_unavailable', message, { applied: 'no' })
}
