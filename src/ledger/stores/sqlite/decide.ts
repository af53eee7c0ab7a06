import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { wakesWaiters } from '../../core/record.ts'
import type { ClaimRequest, DecisionOf, Request } from '../../core/request.ts'
import type { Moment, Step } from '../../core/transition.ts'
import { transition } from '../../core/transition.ts'
import type { AppliedDecision } from '../../store/port.ts'
import type { TimeSource } from './clock.ts'
import type { Connection } from './connection.ts'
import type { Meta } from './meta.ts'
import { nowOf } from './meta.ts'

/** What is read once at the start of some decisions inside one write transaction, and written once at their end. */
export interface Turn {
  readonly meta: Meta
  readonly now: number
  fence: number
  floor: number
  readonly woken: RecordId[]
}

/** `leastFence` keeps a fence that was handed out in a transaction that then rolled back from being granted again. */
export function beginTurn(connection: Connection, time: TimeSource, leastFence: number): Turn {
  const meta = connection.meta.read()
  return { meta, now: nowOf(meta, time), fence: Math.max(meta.fence, leastFence), floor: meta.floor, woken: [] }
}

/** Ordinary claims and settles leave the meta row alone. */
export function endTurn(connection: Connection, { meta, floor, woken }: Turn): void {
  const wakes = meta.wakes + (woken.length > 0 ? 1 : 0)
  if (floor !== meta.floor || wakes !== meta.wakes) connection.meta.move(floor, wakes)
}

/** Decides one request by `transition` and writes what changed. The caller holds the writer. */
export function decide<R extends Request>(
  connection: Connection,
  turn: Turn,
  request: R,
): AppliedDecision<DecisionOf<R>>
export function decide(connection: Connection, turn: Turn, request: Request): AppliedDecision {
  const at: Moment = { now: turn.now, fence: turn.fence + 1 }
  const { record, decision } = quickly(connection, turn, request, at) ?? carefully(connection, turn, request, at)
  return { decision, record, now: turn.now }
}

/** The two requests of an ordinary life, each in one statement and without a read. */
function quickly(connection: Connection, turn: Turn, request: Request, at: Moment): Step | null {
  if (request.kind === 'settle') return connection.settle.tryBlind(request, at)
  return request.kind === 'claim' ? insertFirst(connection, turn, request, at) : null
}

function insertFirst(connection: Connection, turn: Turn, request: ClaimRequest, at: Moment): Step | null {
  const step = transition(null, request, at)
  if (step.record?.state !== 'in_progress' || !connection.records.insertFirst(step.record)) return null
  turn.fence = at.fence
  return step
}

function carefully(connection: Connection, turn: Turn, request: Request, at: Moment): Step {
  const stored = connection.records.read(request.id, turn.meta)
  const step: Step = transition(stored, request, at)
  const { record } = step
  if (record === null || record === stored) return step
  write(connection, stored, record)
  noteFences(turn, record)
  if (wakesWaiters(stored, record)) turn.woken.push(record.id)
  return step
}

function write({ records }: Connection, stored: LedgerRecord | null, record: LedgerRecord): void {
  if (stored === null) records.insert(record)
  else records.update(record, stored.incarnation !== record.incarnation)
  const was = stored?.state === 'unknown'
  const is = record.state === 'unknown'
  if (is && !was) records.addUnknown(record.id)
  if (was && !is) records.removeUnknown(record.id)
}

/** The counter is the largest fence among the records; what it does not show is kept as the floor. */
function noteFences(turn: Turn, record: LedgerRecord): void {
  // A probe's fence stands inside of its record.
  if (record.state === 'unknown') turn.floor = Math.max(turn.floor, record.probe?.fence ?? 0)
  // A settle may bring back a record of a store that was reset: later fences must stay above it.
  turn.fence = Math.max(turn.fence, record.fence, turn.floor)
}
