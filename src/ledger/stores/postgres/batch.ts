import type { AppliedWord } from '../../core/errors.ts'
import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { ClaimRequest, Request, SettleRequest } from '../../core/request.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Applied } from '../../store/port.ts'
import type { Answers } from '../../store/sql/decide.ts'
import { answerUnchanged } from '../../store/sql/decide.ts'
import { unfit } from '../../store/sql/fit.ts'
import type { HoldRequest } from './hold.ts'
import type { Lane } from './lanes.ts'
import { settlesPlainly } from './settle.ts'
import type { Executor } from './statement.ts'
import type { Steps } from './steps.ts'

export interface BatchTools {
  readonly steps: Steps
  readonly lane: Lane
  readonly deadline: Deadline
  fault(error: unknown, whenLost: AppliedWord): OnceError
  wake(ids: readonly string[]): void
}

interface Pending {
  readonly index: number
  readonly request: Request
}

interface Batch extends BatchTools {
  readonly on: Executor
  readonly answers: (Applied | null)[]
  /** Places of rows that a single statement could not get in time, because another transaction holds one of them. */
  readonly contended: Set<number>
  /** Records whose waiters are to be notified. */
  readonly woken: string[]
}

/** Rounds of the slow path for rows that keep appearing and disappearing; more than a few is a fight, not a race. */
const ROUNDS = 5

/**
 * Decides every request of a batch. Each step commits by itself, so a step that fails takes nothing from those that
 * were answered before it: a grant is never lost.
 */
export async function applyBatch(tools: BatchTools, requests: readonly Request[]): Promise<readonly Applied[]> {
  const [first] = requests
  const alone = requests.length === 1 && first !== undefined && hasStatement(first) ? first : null
  const answer = alone === null ? null : await applyAlone(tools, alone)
  return answer === null ? await applySteps(tools, requests, alone !== null) : [answer]
}

type WithStatement = ClaimRequest | SettleRequest

function hasStatement(request: Request): request is WithStatement {
  const isPlain = request.kind === 'claim' || (request.kind === 'settle' && settlesPlainly(request))
  return isPlain && unfit(request) === null
}

/** The first two steps for a single caller: one prepared statement. Null where it found nothing to do. */
async function applyAlone(tools: BatchTools, request: WithStatement): Promise<Applied | null> {
  const { steps, lane } = tools
  const woken: string[] = []
  let answer: Applied | null
  try {
    if (request.kind === 'claim') [answer = null] = await steps.insertClaims(lane.on, [request])
    else {
      const settled = await steps.settle(lane.on, [request])
      woken.push(...settled.woken)
      ;[answer = null] = settled.answers
    }
  } catch (error) {
    const fault = tools.fault(error, 'maybe')
    if (isOfOneRow(fault)) return { error: fault }
    lane.connection.destroy(fault)
    throw fault
  }
  if (woken.length > 0) {
    tools.wake(woken)
    await steps.notify(lane.connection, lane.on, woken)
  }
  return answer
}

/** @param begun whether the first two steps have been tried */
async function applySteps(tools: BatchTools, requests: readonly Request[], begun: boolean): Promise<Applied[]> {
  const answers = requests.map((request): Applied | null => {
    const error = unfit(request)
    return error === null ? null : { error }
  })
  const batch: Batch = { ...tools, on: tools.lane.on, answers, contended: new Set(), woken: [] }
  const rows = requests
    .map((request, index): Pending => ({ index, request }))
    .filter(({ index }) => answers[index] === null)
  const left = () => rows.filter(({ index }) => answers[index] === null)
  try {
    const fresh = begun ? [] : rows
    // 1. First attempts: one insert.
    await isolate(batch, fresh.filter(isClaim), (claims) => insertClaims(batch, claims))
    // 2. Outcomes of attempts that run undisturbed: one guarded update, and one for starts, heartbeats and pointers.
    await isolate(batch, fresh.filter(isPlainSettle), (settles) => settle(batch, settles))
    await isolate(batch, rows.filter(isHold), (holds) => hold(batch, holds))
    // 3. Whatever leaves its record as it is needs no lock.
    await isolate(batch, left(), (some) => untilCommit(batch, () => readOnly(batch, some)))
    // 4. The rest, under locks.
    await decideLeft(batch, left())
  } catch (error) {
    const fault = error as OnceError
    tools.lane.connection.destroy(fault)
    if (!answers.some((answer) => answer !== null && 'decision' in answer)) throw fault
    for (const { index } of left()) answers[index] = { error: notSent(fault) }
  }
  // 5. Those who wait, here and elsewhere.
  tools.wake(batch.woken)
  await tools.steps.notify(tools.lane.connection, batch.on, batch.woken)
  return answers.map(
    (answer) => answer ?? { error: new OnceError('store_unavailable', 'Internal error: request not handled.') },
  )
}

function isClaim(row: Pending): row is Pending & { request: ClaimRequest } {
  return row.request.kind === 'claim'
}

function isPlainSettle(row: Pending): row is Pending & { request: SettleRequest } {
  return row.request.kind === 'settle' && settlesPlainly(row.request)
}

function isHold(row: Pending): row is Pending & { request: HoldRequest } {
  const { kind } = row.request
  return kind === 'start' || kind === 'renew' || kind === 'attach'
}

/**
 * Runs one step, and halves it when a row was refused or is held: that row fails alone. Any other failure ends the
 * batch; the rows of this step may have been written, those of later steps were not.
 */
async function isolate<P extends Pending>(
  batch: Batch,
  rows: readonly P[],
  step: (rows: readonly P[]) => Promise<void>,
): Promise<void> {
  if (rows.length === 0) return
  try {
    await step(rows)
  } catch (error) {
    const fault = batch.fault(error, 'maybe')
    const ofOneRow = isOfOneRow(fault)
    // The slow path may have committed some of them in an earlier round.
    const open = rows.filter(({ index }) => batch.answers[index] === null)
    if (ofOneRow && open.length > 1 && batch.deadline.remainingMs() > limits.batchLockMs) {
      const middle = open.length >> 1
      await isolate(batch, open.slice(0, middle), step)
      await isolate(batch, open.slice(middle), step)
      return
    }
    for (const { index } of open) batch.answers[index] = { error: fault }
    if (!ofOneRow) throw fault
  }
}

function isOfOneRow({ code }: OnceError): boolean {
  return code === 'row_refused' || code === 'store_busy'
}

async function insertClaims(batch: Batch, rows: readonly (Pending & { request: ClaimRequest })[]): Promise<void> {
  keep(batch, rows, await batch.steps.insertClaims(batch.on, requestsOf(rows)))
}

async function settle(batch: Batch, rows: readonly (Pending & { request: SettleRequest })[]): Promise<void> {
  await unlessHeld(batch, rows, async () => {
    const { answers, woken } = await batch.steps.settle(batch.on, requestsOf(rows))
    keep(batch, rows, answers)
    batch.woken.push(...woken)
  })
}

async function hold(batch: Batch, rows: readonly (Pending & { request: HoldRequest })[]): Promise<void> {
  await unlessHeld(batch, rows, async () => {
    const { answers, woken } = await batch.steps.hold(batch.on, requestsOf(rows))
    keep(batch, rows, answers)
    batch.woken.push(...woken)
  })
}

/** What fails before a COMMIT was sent has changed nothing, for certain. */
async function untilCommit<T>(batch: Batch, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw batch.fault(error, 'no')
  }
}

/** Another open transaction holds one of many rows: the slow path finds out which, without waiting again. */
async function unlessHeld(batch: Batch, rows: readonly Pending[], work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (rows.length === 1 || batch.fault(error, 'maybe').code !== 'store_busy') throw error
    for (const { index } of rows) batch.contended.add(index)
  }
}

async function readOnly(batch: Batch, rows: readonly Pending[]): Promise<void> {
  keep(batch, rows, await answerUnchanged(batch.steps.read, batch.on, requestsOf(rows)))
}

async function decideLeft(batch: Batch, rows: readonly Pending[]): Promise<void> {
  await isolate(
    batch,
    rows.filter(({ index }) => !batch.contended.has(index)),
    (some) => unlessHeld(batch, some, () => decide(batch, some, false)),
  )
  const held = rows.filter(({ index }) => batch.contended.has(index) && batch.answers[index] === null)
  await isolate(batch, held, (some) => decide(batch, some, true))
}

/**
 * Each round is a transaction of its own, so that no transaction waits for a row while holding one that just appeared.
 */
async function decide(batch: Batch, rows: readonly Pending[], skipLocked: boolean): Promise<void> {
  let left = rows
  for (let round = 0; round < ROUNDS && left.length > 0; round++) {
    const these = left
    const { decided, woken } = await batch.lane.inTransaction((on) =>
      untilCommit(batch, () => batch.steps.decide(on, requestsOf(these), skipLocked)),
    )
    batch.woken.push(...woken)
    left = these.filter(({ index }, place) => {
      const answer = decided[place]
      if (answer === undefined || answer === 'again') return true
      batch.answers[index] = answer === 'locked' ? { error: heldByAnother() } : answer
      return false
    })
  }
  for (const { index } of left) batch.answers[index] = { error: heldByAnother() }
}

function requestsOf<R extends Request>(rows: readonly (Pending & { request: R })[]): R[] {
  return rows.map(({ request }) => request)
}

function keep(batch: Batch, rows: readonly Pending[], answers: Answers): void {
  for (const [place, { index }] of rows.entries()) batch.answers[index] = answers[place] ?? null
}

function heldByAnother(): OnceError {
  return new OnceError('store_busy', `Another transaction held the record for more than ${limits.batchLockMs} ms.`)
}

function notSent(fault: OnceError): OnceError {
  if (fault.applied === 'no') return fault
  const message = 'The batch broke off before this request was sent.'
  return new OnceError(fault.code, message, { cause: fault, applied: 'no' }, fault)
}
