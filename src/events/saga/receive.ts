import { isOnceError } from '../../ledger/core/errors.ts'
import { final } from '../../ledger/core/verdict.ts'
import { sqlBehind } from '../../ledger/store/foreign.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { sleep } from '../../runtime/runtime.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { IncomingMessage } from '../inbox/port.ts'
import { isPostponed, postpone } from '../inbox/postpone.ts'
import type { Receipt } from '../inbox/receipt.ts'
import type { InboxEffect } from '../inbox/settle.ts'
import { isOutage } from '../inbox/settle.ts'
import type { SagaListener } from './events.ts'
import type { Parts } from './handle.ts'
import { handleInside } from './handle.ts'
import type { Entry } from './history.ts'
import type { Settings } from './options.ts'
import type { Arrival, Router } from './route.ts'

export interface ReceiveParts extends Parts {
  readonly inbox: Inbox<SqlTx>
  readonly settings: Settings
  readonly emit: SagaListener
  readonly route: Router
  /** Deferred events may have become due. */
  moved(): void
}

/** The result of the last run of a message's effect. The effect may run several times before it commits. */
export interface Run {
  entry: Entry | null
  /** What met another event's change. */
  conflict: Arrival | null
}

/**
 * One message. Only conflicts with other events are tried again here, each time in a new transaction on fresh state;
 * whatever else goes wrong is the inbox's to count.
 */
export async function receive(parts: ReceiveParts, message: IncomingMessage): Promise<Receipt> {
  const { inbox, settings, runtime } = parts
  for (let tries = 1; ; tries++) {
    const waitMs = settings.conflictDelaysMs[tries - 1]
    const run: Run = { entry: null, conflict: null }
    const effect = effectOf(parts, run, waitMs === undefined ? settings.laterMs : 0)
    const receipt = await inbox.receive(message, effect)
    if (receipt.kind === 'handled') emitEntry(parts, run.entry)
    if (receipt.kind !== 'later' || run.conflict === null) return receipt
    noteConflict(parts, run.conflict, message, tries, waitMs === undefined)
    if (waitMs === undefined) return receipt
    // A quarter more or less, so that those who met once do not meet again.
    await sleep(runtime, waitMs * (0.75 + runtime.random() / 2))
  }
}

/** What the inbox runs inside the message's transaction. */
export function effectOf(parts: ReceiveParts, run: Run, laterMs: number): InboxEffect<SqlTx> {
  return async (body, tools) => {
    const sql = sqlBehind(tools.tx)
    run.entry = null
    run.conflict = null
    const { message } = tools
    // Every run has a body of its own, in case that a handler changes it.
    const routed = parts.route(message, () => body)
    // What cannot be understood today will not be understood tomorrow.
    if (routed.kind === 'lost') throw final(routed.error)
    const { arrival } = routed
    try {
      run.entry = await handleInside(parts, { arrival, message, tools, sql })
    } catch (error) {
      if (isOnceError(error, 'saga_conflict')) {
        run.conflict = arrival
        throw postpone(error, { delayMs: laterMs })
      }
      // A database that is down, or a handler that postpones the message, is no failure.
      if (!isPostponed(error) && !isOutage(error)) {
        const { event, id } = arrival
        parts.emit({ kind: 'failed', saga: parts.machine.name, event, id, messageId: message.id, error })
      }
      throw error
    }
  }
}

function noteConflict(
  { machine, emit }: ReceiveParts,
  { event, id }: Arrival,
  { id: messageId }: IncomingMessage,
  tries: number,
  exhausted: boolean,
): void {
  emit({ kind: 'conflict', saga: machine.name, event, id, messageId, tries, exhausted })
}

/** After the commit: before it nothing has happened. */
export function emitEntry({ machine, emit, moved }: ReceiveParts, entry: Entry | null): void {
  if (entry === null) return
  const { id, event, messageId, state } = entry
  const about = { saga: machine.name, id, event, messageId }
  switch (entry.did) {
    case 'handled': {
      const { path, emitted, warnings } = entry
      const count = emitted.reduce((sum, topic) => sum + topic.count, 0)
      emit({ kind: 'handled', ...about, from: state, path, emitted: count })
      for (const warning of warnings) emit({ kind: 'warned', ...about, warning })
      const last = path.at(-1)
      if (last !== undefined && machine.failed.includes(last)) emit({ kind: 'instance_failed', ...about, state: last })
      if (path.length > 0) moved()
      return
    }
    case 'ignored':
      return emit({ kind: 'ignored', ...about, state, why: entry.why, because: entry.because })
    case 'deferred':
      return emit({ kind: 'deferred', ...about, state })
  }
}
