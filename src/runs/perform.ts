import { inTransaction, OpenTransaction } from '../ledger/context.ts'
import { decodeValue } from '../ledger/core/codec.ts'
import { isOnceError, OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { backoffMs, boundedRetryMs } from '../ledger/core/retry.ts'
import { isVerdict, readable } from '../ledger/core/verdict.ts'
import { leaseOver } from '../ledger/effect-context.ts'
import type { Session } from '../ledger/store/port.ts'
import { inPart } from '../ledger/store/port.ts'
import type { SqlTx } from '../ledger/store/sql.ts'
import type { AttemptEnd } from './attempt-end.ts'
import { createAttemptEnd } from './attempt-end.ts'
import type { Place } from './branch.ts'
import type { RetryPolicy } from './context.ts'
import type { Entry, EntryState } from './entry.ts'
import { COPIED } from './entry.ts'
import type { Execution } from './execution.ts'
import { never } from './execution.ts'
import { allDefinite, ambiguousSince, keyAfter, withFailure, withUnseen } from './failures.ts'
import { derivedKey } from './key.ts'
import { diverged, stepFailed, storableFailure } from './problems.ts'
import { recordable } from './recordable.ts'
import type { StepContext, Verified } from './step-context.ts'

/** A step, whatever it was written as: what to do, and what may be done when its end was not recorded. */
export interface StepWork {
  readonly semantics: 'keyed' | 'once' | 'transactional' | 'verify'
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  readonly fingerprint: string | null
  /** Places that are not compared. */
  readonly unstable: readonly string[]
  /** Encoded. */
  readonly plan: string | null
  /** The plan is recorded before it is acted on, and the recorded one is acted on ever after. */
  readonly planFirst: boolean
  /** Beyond this time after its first send a provider would not know the key any more. */
  readonly windowMs: number | null
  /** A definite failure is kept under its key: the next attempt takes another one. */
  readonly keepsFailures: boolean
  act(context: StepContext, plan: string | null, tx: SqlTx | null): Promise<unknown>
  readonly verify: ((context: StepContext, plan: string | null) => Promise<Verified<unknown>>) | null
}

/** The main path of every step: a final result is returned, anything else is brought to one. */
export async function perform(execution: Execution, place: Place, work: StepWork): Promise<unknown> {
  mustMatch(place, work)
  const { around } = execution
  execution.announced.came(place, isBlind(work))
  let entry = place.recorded
  if (entry !== null && isFinal(entry)) report(execution, place, 'replayed')
  let heard = 0
  for (;;) {
    // 1. What is final is known, and nothing is done.
    if (entry?.state === 'succeeded') return decodeValue(entry.result ?? '')
    if (entry?.state === 'failed') throw stepFailed(entry)
    if (entry?.state === 'abandoned') return await never()
    // 2. Not before its time.
    const dueAt = entry?.dueAt ?? null
    const waits = entry?.state === 'unknown' || (entry?.state === 'retrying' && dueAt !== null)
    if (entry !== null && waits && (dueAt === null || dueAt > (await execution.clock()))) {
      const unknown = entry.state === 'unknown'
      const woken = await execution.wait({ dueAt, unknown, ...(unknown ? { heard } : {}) }, place.branch.signal)
      if (woken === 'abandoned') entry = await execution.put(abandon(entry))
      if (woken !== 'notified') continue
      // An operator may have resolved it.
      heard = execution.heard()
      entry = await execution.look(entry)
      continue
    }
    if (around.draining()) return await execution.handOver()
    // 3. A paused process may not know yet that other workers have its runs: it begins nothing.
    if (!around.alive()) return await loseRun(execution)
    const before = entry?.state ?? null
    // 4. An attempt has no recorded end: probe, or wait for an operator. Keyed steps may simply act again.
    if (await isInDoubt(execution, place, entry, work)) entry = await afterDoubt(execution, place, entry, work)
    // 5. The dangerous region: a crash between here and the record leaves the outcome unknown. What needs an intent has
    // one.
    else entry = await execution.acting(() => attempt(execution, place, entry, work))
    // A probe that has found nothing out has changed nothing.
    if (entry.state !== before || before === 'retrying') report(execution, place, entry.state)
  }
}

function isFinal({ state }: Entry): boolean {
  return state === 'succeeded' || state === 'failed'
}

function report({ around, run }: Execution, { stepId }: Place, state: EntryState | 'replayed'): void {
  if (state === 'waiting') return
  around.emit({ kind: 'step', runId: run.id, definition: run.definition, step: stepId, state })
}

function loseRun(execution: Execution): Promise<never> {
  execution.lose()
  return never()
}

/** A branch that lost its race is never driven again: whatever its steps were doing, they end here. */
function abandon(entry: Entry): Entry {
  return { ...entry, state: 'abandoned', dueAt: null }
}

function mustMatch({ recorded, stepId, tick }: Place, { fingerprint, plan }: StepWork): void {
  const before = recorded?.fingerprint ?? null
  if (before === null || before === COPIED || fingerprint === null || before === fingerprint) return
  // Of a declared input only the fingerprint is kept; a plan can be shown.
  const side = (input: string, its: string | null) => ({ step: stepId, tick, input, ...planIn(its) })
  const sides = [side(before, recorded?.plan ?? null), side(fingerprint, plan)] as const
  throw diverged(`The input of ${stepId} is another one than was recorded.`, ...sides)
}

function planIn(plan: string | null): { readonly plan?: unknown } {
  return plan === null ? {} : { plan: decodeValue(plan) }
}

/** As long as the provider remembers the key, sending again is safe; afterwards the outcome cannot be determined. */
async function isInDoubt(execution: Execution, place: Place, entry: Entry | null, work: StepWork): Promise<boolean> {
  if (entry?.state === 'unknown') return true
  if (work.semantics !== 'keyed')
    return entry === null ? execution.announced.mayHaveBegun(place) : entry.state === 'intent'
  if (work.windowMs === null) return false
  const since = doubtfulSince(execution, place, entry)
  return since !== null && (await execution.clock()) - since >= work.windowMs
}

/** A safe lower bound of the first send without a recorded end; null when there was none. */
function doubtfulSince(execution: Execution, place: Place, entry: Entry | null): number | null {
  const times = [ambiguousSince(entry?.failures ?? []), unseenSince(execution, place, entry)]
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** Since when a worker that died may have sent it. */
function unseenSince({ doubt }: Execution, { branch }: Place, entry: Entry | null): number | null {
  const intent = entry?.state === 'intent' ? entry.at : null
  const dead = doubt.since(branch.path)
  return intent === null || dead === null ? (intent ?? dead) : Math.min(intent, dead)
}

/** An attempt without a recorded end. */
async function afterDoubt(execution: Execution, place: Place, before: Entry | null, work: StepWork): Promise<Entry> {
  const { verify, fingerprint, plan } = work
  const entry = before ?? execution.entry(place, { state: 'intent', attempts: 1, fingerprint, plan })
  if (verify === null) return execution.put(execution.entry(place, { ...entry, state: 'unknown', dueAt: null }))
  const end = endOf(execution, place, work)
  const context = contextOf(execution, place, entry, work, end)
  // A probe that fails, or does not come back, has answered nothing.
  const found = await execution
    .acting(() => end.race(verify(context, entry.plan)))
    .catch(() => ({ kind: 'unknown' as const }))
    .finally(end.stop)
  const now = await execution.clock()
  switch (found.kind) {
    case 'done':
      return execution.put(succeeded(execution, place, entry, found.result))
    case 'not_done': {
      const known = { ...entry, failures: allDefinite(entry.failures), dueAt: null, at: now }
      if (isExhausted(entry, work)) return execution.put(execution.entry(place, { ...known, state: 'failed' }))
      const dueAt = nextAttemptAt(execution, entry, work, now)
      return execution.put(execution.entry(place, { ...known, state: 'retrying', dueAt }))
    }
    case 'unknown': {
      // Asked again after as long as it has been unknown, so that the pauses double.
      const pauseMs = Math.min(Math.max(limits.probeBaseMs, now - entry.at), limits.probeCapMs)
      return execution.put(execution.entry(place, { ...entry, state: 'unknown', dueAt: now + pauseMs }))
    }
  }
}

/**
 * The last attempt was seen to fail, and it was the last one allowed. One that a dead worker left in the middle was
 * not.
 */
function isExhausted(entry: Entry, { retry }: StepWork): boolean {
  return sawItsEnd(entry) && entry.attempts >= (retry.attempts ?? limits.runStepAttempts)
}

function sawItsEnd({ state, dueAt, failures, attempts }: Entry): boolean {
  // An intent that was seen to fail has a time for the next attempt.
  return state === 'intent' ? dueAt !== null : failures.at(-1)?.attempt === attempts
}

/** What failed waits as long as it would have without a question in between. */
function nextAttemptAt(execution: Execution, entry: Entry, { retry }: StepWork, now: number): number {
  const last = entry.failures.at(-1)
  if (last === undefined || !sawItsEnd(entry)) return now
  const asked = entry.state === 'intent' ? entry.dueAt : null
  return Math.max(now, asked ?? last.at + delayMs(execution, retry, entry.attempts, null))
}

async function attempt(execution: Execution, place: Place, before: Entry | null, work: StepWork): Promise<Entry> {
  const attempts = (before?.attempts ?? 0) + 1
  const unseen = work.windowMs === null ? null : unseenSince(execution, place, before)
  const failures = withUnseen(before?.failures ?? [], unseen, Math.max(before?.attempts ?? 0, 1))
  const known = { fingerprint: work.fingerprint, plan: before?.plan ?? work.plan, failures }
  const start = execution.entry(place, { state: 'intent', ...known, attempts, dueAt: null })
  if (needsIntent(work) && !(before?.state === 'intent' && work.semantics === 'keyed')) {
    if (before !== null || !isBlind(work) || !execution.beginsAnnounced(place, start)) await execution.put(start)
  }
  // The process may have been paused since: another worker may have found the intent and continued from it.
  if (!execution.around.alive()) return await loseRun(execution)
  const end = endOf(execution, place, work)
  const context = contextOf(execution, place, start, work, end)
  const begunAt = execution.around.nearNow()
  try {
    if (work.semantics === 'transactional')
      return execution.kept(await actInTransaction(execution, place, start, work, context))
    const result = await end.race(work.act(context, start.plan, null))
    return await execution.put(succeeded(execution, place, start, result))
  } catch (thrown) {
    if (place.branch.signal.aborted) return await execution.put(abandon(start))
    const error = readable(thrown)
    return await execution.put(await afterFailure(execution, place, start, work, { error, begunAt }))
  } finally {
    end.stop()
  }
}

function needsIntent(work: StepWork): boolean {
  return isBlind(work) || work.planFirst
}

/** No key makes it safe to repeat. */
function isBlind({ semantics }: StepWork): boolean {
  return semantics === 'once' || semantics === 'verify'
}

function succeeded(execution: Execution, place: Place, entry: Entry, value: unknown): Entry {
  const encoded = recordable(value)
  if ('problem' in encoded) throw new NotRecordable(`Its result ${encoded.problem}.`)
  const at = execution.around.nearNow()
  const leadsTo = execution.follower(place)
  return execution.entry(place, { ...entry, state: 'succeeded', result: encoded.text, dueAt: null, at, leadsTo })
}

/** The step acted, and what it returned is lost: trying again would act again. */
class NotRecordable extends Error {}

/** The result and what the step wrote commit together; the fence is checked there, too. */
async function actInTransaction(
  execution: Execution,
  place: Place,
  start: Entry,
  work: StepWork,
  context: StepContext,
): Promise<Entry> {
  const { around, run } = execution
  const timeoutMs = Math.min(work.timeoutMs, limits.runTimerMs)
  const call = { timeoutMs, lockMs: limits.transactionLockMs, refuseTwinOf: null }
  let transaction: OpenTransaction | null = null
  try {
    return await around.transactions.run(async (session) => {
      // Operations of a ledger on this store join the transaction, and one that needs a lease is refused.
      const open = (transaction = new OpenTransaction(around.store, session, () => lost(run.id)))
      const act = (inner: Session<unknown>) => {
        open.session = inner
        const tx = around.wantsOrm(run.definition) ? (inner.tx as SqlTx) : sqlOf(inner)
        return inTransaction(open, () => work.act(context, start.plan, tx))
      }
      // In an ORM's transaction a part shows whether the step has ended it.
      const result = await (session.sql === undefined ? act(session) : inPart(session, act))
      const entry = succeeded(execution, place, start, result)
      const put = () => around.writes.putIn(sqlOf(session), { runId: run.id, fence: run.fence }, entry)
      if (await (session.last === undefined ? put() : session.last(put))) return entry
      execution.lose()
      throw lost(run.id)
    }, call)
  } catch (error) {
    if (!isOnceError(error) || error.applied !== 'maybe') throw error
    // The answer to the commit was lost: acting again would write twice, so read the outcome.
    const read = () => around.store.transactions.run(({ tx }) => around.writes.committed(tx, run.id, place.key), call)
    const committed = await execution.insist(read)
    if (committed?.state === 'succeeded') return committed
    throw error
  } finally {
    // The store may have ended it while the step still ran: what the step does later is outside.
    endTransaction(transaction)
  }
}

function sqlOf({ sql, tx }: Session<unknown>): SqlTx {
  return sql ?? (tx as SqlTx)
}

function endTransaction(transaction: OpenTransaction | null): void {
  transaction?.end()
}

function lost(runId: string): OnceError {
  const next = 'Another worker continues it.'
  return new OnceError('lease_lost', `The run ${runId} is not this worker's any more.`, { next })
}

function contextOf(
  { around, run }: Execution,
  { key }: Place,
  { attempts, failures }: Entry,
  work: StepWork,
  end: AttemptEnd,
): StepContext {
  const effectKey = work.keepsFailures ? keyAfter(key, failures) : key
  return {
    effectKey,
    attemptNumber: attempts,
    fence: run.fence,
    get signal() {
      return end.signal()
    },
    derive(name) {
      end.signal().throwIfAborted()
      // A worker that was paused may not know yet that another one has its runs.
      if (!around.alive()) throw leaseOver(`the run ${run.id}`)
      return derivedKey(effectKey, name)
    },
  }
}

function endOf({ around, lost }: Execution, { branch }: Place, { timeoutMs }: StepWork): AttemptEnd {
  return createAttemptEnd(around.runtime, { timeoutMs, branch: branch.signal, lost })
}

async function afterFailure(
  execution: Execution,
  place: Place,
  start: Entry,
  work: StepWork,
  { error: thrown, begunAt }: { readonly error: unknown; readonly begunAt: number },
): Promise<Entry> {
  const error = isVerdict(thrown) ? thrown.error : thrown
  const now = await execution.clock()
  // A transaction that failed was rolled back.
  const proven = isVerdict(thrown) || work.semantics === 'transactional'
  const failure = { ...storableFailure(error), attempt: start.attempts, at: begunAt, definite: proven }
  // One that only waited for its turn was no attempt.
  const counted = !isVerdict(thrown) || thrown.counted
  const failures = counted ? withFailure(start.failures, failure) : start.failures
  const attempts = counted ? start.attempts : start.attempts - 1
  const after = (fields: Pick<Entry, 'state'> & Partial<Entry>) =>
    execution.entry(place, { ...start, failures, attempts, dueAt: null, ...fields })
  if (isVerdict(thrown) && thrown.verdict === 'final') return after({ state: 'failed' })
  // A key makes repeating safe. Anything else may have happened.
  const safe = work.semantics === 'keyed' || proven
  if (thrown instanceof NotRecordable)
    return after({ state: safe && work.semantics !== 'keyed' ? 'failed' : 'unknown' })
  const dueAt = now + delayMs(execution, work.retry, start.attempts, thrown)
  if (!safe) return work.verify === null ? after({ state: 'unknown' }) : after({ state: 'intent', dueAt })
  const failed = after({ state: 'failed' })
  const since = ambiguousSince(failures)
  const exhausted = counted && isExhausted(failed, work)
  if (exhausted && since === null) return failed
  const outside = work.windowMs !== null && since !== null && dueAt - since >= work.windowMs
  if (!exhausted && !outside) return after({ state: 'retrying', dueAt })
  // It may have happened. A step with a probe asks at once; else it waits for an operator.
  return after({ state: 'unknown', dueAt: work.verify === null ? null : now })
}

function delayMs({ around }: Execution, retry: RetryPolicy, attempts: number, thrown: unknown): number {
  const asked = boundedRetryMs((thrown as { readonly retryAfterMs?: number | null } | null)?.retryAfterMs)
  if (asked !== null) return asked
  const { backoff = 'exponential', baseMs = limits.runRetryBaseMs, capMs = limits.runRetryCapMs } = retry
  return backoff === 'fixed' ? Math.ceil(baseMs) : backoffMs(attempts, { baseMs, capMs }, around.runtime.random())
}
