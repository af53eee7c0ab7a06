import type { Awaitable } from '../../../runtime/runtime.ts'
import { OnceError } from '../../core/errors.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { DecisionOf, Request } from '../../core/request.ts'
import type { AppliedDecision, Call, Claims } from '../../store/port.ts'
import type { Core } from './core.ts'
import type { RecordView } from './tables.ts'
import { decide, putRecord } from './tables.ts'

/** A caller that awaits one answer after the other never leaves the turn of the event loop that it began in. */
const DECISIONS_PER_TURN = 256

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve))

export function createClaims(core: Core): Claims {
  const { tables, time, writer, watchers } = core
  const view: RecordView = {
    get: (id) => tables.records.get(id) ?? null,
    put: (record, before) => {
      putRecord(tables, record, before)
      watchers.changed(before, record)
    },
  }

  let decisions = 0
  /** Whether this one has to let timers and sockets have their turn first. */
  const isLong = () => core.takesTurns && ++decisions % DECISIONS_PER_TURN === 0

  function apply<R extends Request>(request: R, call: Call): Awaitable<AppliedDecision<DecisionOf<R>>> {
    // No transaction is open, so there is no turn to wait for: deciding ends before anything else can begin.
    if (writer.isFree()) return decide(tables, view, request, time.nowMs())
    const turn = { short: true, waitMs: call.timeoutMs, late: () => late(call) }
    return writer.run(turn, () => decide(tables, view, request, time.nowMs()))
  }

  return {
    apply: (request, call) => {
      core.checkOpen()
      return isLong() ? nextTurn().then(() => apply(request, call)) : apply(request, call)
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
