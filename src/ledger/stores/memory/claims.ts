import { OnceError } from '../../core/errors.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Request } from '../../core/request.ts'
import type { Applied, Call, Claims } from '../../store/port.ts'
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

  function applyNow<R extends Request>(requests: readonly R[]): Applied<R>[] {
    const now = time.nowMs()
    return requests.map((request) => decide(tables, view, request, now))
  }

  return {
    // Deciding is a matter of microseconds and never waits, so a second lane would have nothing to do.
    lanes: 1,
    apply: async (requests, call) => {
      core.checkOpen()
      // Nobody writes, so there is no turn to wait for: deciding is over before anybody else can begin.
      if (writer.isFree()) return applyNow(requests)
      const turn = { short: true, rows: requests.length, waitMs: call.timeoutMs, late: () => late(call) }
      return await writer.run(turn, () => applyNow(requests))
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
