import type { OnceError } from '../../core/errors.ts'
import { isOnceError } from '../../core/errors.ts'
import type { Fence, RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { wakesWaiters } from '../../core/record.ts'
import type { DecisionOf, Request, SettleRequest } from '../../core/request.ts'
import type { Moment, Step } from '../../core/transition.ts'
import { runningUnder, transition } from '../../core/transition.ts'
import type { Applied, AppliedDecision } from '../../store/port.ts'
import type { GroupedClaims } from '../../store/request-group.ts'
import type { Clock, Meta } from './clock.ts'
import { nowOf } from './clock.ts'
import type { Connection } from './connection.ts'
import type { Engine } from './engine.ts'
import { isBroken, isBusy, refusedRow } from './errors.ts'
import type { Decider } from './group.ts'
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
  engine.decideBy(createDecider({ engine, watchers, fences }))
  return {
    apply: engine.apply,
    onFlush: (listener) => engine.onRequests(listener),
    read: (ids, call) =>
      engine.read(call, (reader) => {
        const meta = reader.meta.read()
        return { now: nowOf(meta, engine.clock), records: ids.map((id: RecordId) => reader.records.read(id, meta)) }
      }),
    watch: (wake) => watchers.watch(wake),
  }
}

/** Decides the requests of one flush by one reading of the clock and the fences. */
function createDecider({ engine, watchers, fences }: ClaimsParts): Decider {
  let last: Turn | null = null

  function decideAll(writer: Connection, requests: readonly Request[], each: typeof decideAlone): readonly Applied[] {
    const turn = beginTurn(writer, engine.clock, fences.least)
    const answers = requests.map((request) => each(writer, turn, request))
    endTurn(writer, turn)
    last = turn
    return answers
  }

  function decideOne(writer: Connection, request: Request): AppliedDecision {
    if (!writer.checkpoints.isSmall) writer.checkpoints.expect(1)
    const turn = beginTurn(writer, engine.clock, fences.least)
    const applied = decide(writer, turn, request)
    if (turn.woken.length > 0 || turn.floor !== turn.meta.floor) endTurn(writer, turn)
    last = turn
    return applied
  }

  /** By the clock that was read last: the statement writes nothing when the file has another by now. */
  function settleOne(writer: Connection, request: SettleRequest): AppliedDecision | null {
    if (last === null) return null
    const now = nowOf(last.meta, engine.clock)
    const step = settleBlind(writer, request, { now, fence: fences.least + 1 }, last.meta)
    if (step === null) return null
    if (!writer.checkpoints.isSmall) writer.checkpoints.expect(1)
    return { decision: step.decision, record: step.record, now }
  }

  function committed(): void {
    if (last === null) return
    const { meta, woken, fence } = last
    fences.least = Math.max(fences.least, fence)
    if (watchers.waiters.watches.size > 0)
      watchers.committed(meta.wakes, meta.wakes + (woken.length > 0 ? 1 : 0), woken)
  }

  return {
    committed,
    alone: (request) => {
      const settled = request.kind === 'settle' ? engine.tryAlone(settleOne, request) : null
      if (settled !== null) return settled
      try {
        const applied = engine.tryWrite(decideOne, request)
        if (applied !== null) committed()
        return applied
      } catch (error) {
        throw isRowFault(error) ? refusalOf(error) : error
      }
    },
    decide: (writer, requests) => {
      writer.checkpoints.expect(requests.length)
      try {
        return decideAll(writer, requests, decide)
      } catch (error) {
        if (!isRowFault(error)) throw error
        // Again, with a savepoint around each row, so that only the bad ones fail. Not at first: within a savepoint
        // SQLite copies every page that it changes, which is a third of the time of a request.
        engine.beginAgain(writer)
        return decideAll(writer, requests, decideAlone)
      }
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

/** What is read once at the start of some decisions inside one write transaction, and written once at their end. */
export interface Turn {
  readonly meta: Meta
  readonly now: number
  fence: number
  floor: number
  readonly woken: RecordId[]
}

/** `leastFence` keeps a fence that was handed out in a transaction that then rolled back from being granted again. */
export function beginTurn(connection: Connection, clock: Clock, leastFence: number): Turn {
  const meta = connection.meta.read()
  return { meta, now: nowOf(meta, clock), fence: Math.max(meta.fence, leastFence), floor: meta.floor, woken: [] }
}

/** Ordinary claims and settles leave the meta row alone. */
export function endTurn(connection: Connection, { meta, floor, woken }: Turn): void {
  const wakes = meta.wakes + (woken.length > 0 ? 1 : 0)
  if (floor !== meta.floor || wakes !== meta.wakes) connection.meta.move(floor, wakes)
}

/**
 * Decides one request by `transition` and writes what changed; the two requests of an ordinary life in one statement each
 * and without a read. The caller holds the writer.
 */
function decide<R extends Request>(connection: Connection, turn: Turn, request: R): AppliedDecision<DecisionOf<R>>
function decide(connection: Connection, turn: Turn, request: Request): AppliedDecision {
  const at: Moment = { now: turn.now, fence: turn.fence + 1 }
  if (request.kind === 'claim') {
    const { record, decision } = transition(null, request, at)
    if (record?.state === 'in_progress' && connection.records.insertFirst(record)) {
      turn.fence = at.fence
      return { decision, record, now: turn.now }
    }
  }
  const blind = request.kind === 'settle' ? settleBlind(connection, request, at, null) : null
  const { record, decision } = blind ?? carefully(connection, turn, request, at)
  return { decision, record, now: turn.now }
}

/**
 * The rules are run on what the record must be, so that this path cannot decide differently from the others. Null when the
 * record has to be looked at.
 */
function settleBlind(
  { records }: Connection,
  request: SettleRequest,
  at: Moment,
  anchor: Meta | null,
): Step<DecisionOf<SettleRequest>> | null {
  const { grant, to } = request
  // An unknown also writes to the table of unknowns, and what an attempt notes stands in `detail`: too rare to be fast.
  if (to.state === 'unknown' || to.note !== undefined || grant.id !== request.id) return null
  const step = transition(runningUnder(grant), request, at)
  const { record } = step
  if (record === null || !('outcome' in record)) return null
  return records.settle(grant, record, anchor) ? step : null
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
export function noteFences(turn: Turn, record: LedgerRecord): void {
  // A probe's fence stands inside of its record.
  if (record.state === 'unknown') turn.floor = Math.max(turn.floor, record.probe?.fence ?? 0)
  // A settle may bring back a record of a store that was reset: later fences must stay above it.
  turn.fence = Math.max(turn.fence, record.fence, turn.floor)
}
