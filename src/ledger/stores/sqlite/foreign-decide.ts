import type { LedgerRecord } from '../../core/record.ts'
import { wakesWaiters } from '../../core/record.ts'
import type { DecisionOf, Request } from '../../core/request.ts'
import type { Step } from '../../core/transition.ts'
import { transition } from '../../core/transition.ts'
import type { AppliedDecision } from '../../store/port.ts'
import type { RecordRow } from '../../store/row.ts'
import type { SqlRow } from '../../store/sql.ts'
import type { Turn } from './claims.ts'
import { noteFences } from './claims.ts'
import type { Clock, Meta } from './clock.ts'
import { MOVE_META, nowOf, READ_META } from './clock.ts'
import type { BoundValue } from './driver.ts'
import { blobOf, recordOf, recordTexts, valuesOf } from './records.ts'

/** One statement on a connection that is not ours. */
export type Send = (text: string, values?: readonly BoundValue[]) => Promise<readonly SqlRow[]>

export interface Decided<R extends Request> {
  readonly applied: AppliedDecision<DecisionOf<R>>
  readonly turn: Turn
}

export async function readMeta(send: Send): Promise<Meta> {
  const [row] = await send(READ_META)
  return row as unknown as Meta
}

/**
 * Decides one request by `transition` and writes what changed, as `decide` does it on our own connections. The caller holds
 * the lock of the only writer.
 */
export async function decideBy<R extends Request>(
  send: Send,
  clock: Clock,
  leastFence: number,
  request: R,
): Promise<Decided<R>> {
  const meta = await readMeta(send)
  const now = nowOf(meta, clock)
  const turn: Turn = { meta, now, fence: Math.max(meta.fence, leastFence), floor: meta.floor, woken: [] }
  const id = blobOf(request.id)
  const [row] = await send(recordTexts.read, [id, id])
  const stored = row === undefined ? null : recordOf({ ...row } as unknown as RecordRow, request.id, meta)
  const { record, decision } = transition(stored, request as Request, { now, fence: turn.fence + 1 }) as Step<
    DecisionOf<R>
  >
  if (record !== null && record !== stored) {
    await write(send, stored, record)
    noteFences(turn, record)
    if (wakesWaiters(stored, record)) turn.woken.push(record.id)
    const wakes = meta.wakes + turn.woken.length
    if (turn.floor !== meta.floor || wakes !== meta.wakes) await send(MOVE_META, [turn.floor, wakes])
  }
  return { applied: { decision, record, now }, turn }
}

async function write(send: Send, stored: LedgerRecord | null, record: LedgerRecord): Promise<void> {
  const id = blobOf(record.id)
  if (stored === null) {
    await send(recordTexts.takeId, [id])
    await send(recordTexts.insert, [id, ...valuesOf(record)])
  } else {
    const text = stored.incarnation === record.incarnation ? recordTexts.update : recordTexts.restart
    await send(text, [...valuesOf(record), id, id])
  }
  const was = stored?.state === 'unknown'
  const is = record.state === 'unknown'
  if (is && !was) await send(recordTexts.addUnknown, [id])
  if (was && !is) await send(recordTexts.removeUnknown, [id])
}
