import { sleep } from '../runtime/runtime.ts'
import type { Context } from './context.ts'
import { inTransaction, OpenTransaction, unwatched } from './context.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { effectKeyOf } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { ClaimRequest, Grant, Settlement, SettleRequest } from './core/request.ts'
import { backoffMs } from './core/retry.ts'
import { isVerdict, readable, released } from './core/verdict.ts'
import type { Command, Declared } from './declared.ts'
import { inDoubt } from './doubt.ts'
import type { Effect } from './effect.ts'
import { reportNotStored } from './effect.ts'
import type { EffectContext, Ground, TransactionContext } from './effect-context.ts'
import { leaseLost, leaseOver, noteOf, OwnContext } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import { decideRuns } from './flight.ts'
import type { Ended, Granted } from './granted.ts'
import { createPendingEffect } from './granted.ts'
import { Claiming, decidedBy, noteClaim, readAgain } from './lead.ts'
import { packFinal, packValue } from './outcome.ts'
import { present } from './present.ts'
import { refusal, stillRunning } from './refusal.ts'
import type { OutboxMessage } from './store/outbox.ts'
import type { Session, TransactionCall, Transactions } from './store/port.ts'
import { inPart } from './store/port.ts'
import { claimUnique } from './unique.ts'

const RETRY = { baseMs: 10, capMs: 500 }

/** The effect of one call. */
interface Work {
  readonly effect: Effect
  /** Its end comes from outside, once: it cannot run again. */
  readonly handedOver: boolean
}

/** A transaction is open as long as a function runs in it: this one waits until the caller settles. */
export function handOver(
  context: Context,
  op: Declared,
  command: Command,
  lead: (effect: Effect) => Promise<Landing>,
): Promise<Granted<EffectContext> | Landing> {
  return new Promise((resolve, reject) => {
    const { enter, inside, end } = createPendingEffect()
    const settle = async (how: Ended) => {
      end(how)
      return present(context, op, command, await landing, true)
    }
    const abandon = (reason: unknown) => settle({ thrown: released(reason) }).then(ignore, ignore)
    const landing = lead((given: EffectContext) => {
      const ended = enter()
      resolve({ kind: 'granted', context: given, command, start: async () => {}, inside, settle, abandon })
      return ended
    })
    landing.then(resolve, reject)
  })
}

function ignore(): void {}

/** Runs the effect in a transaction of its own, again when the database rolled it back for reasons of its own. */
export async function leadTransaction(
  context: Context,
  op: Declared,
  command: Command,
  { effect, handedOver }: Work,
  flight: Flight,
): Promise<Landing> {
  const hot = await readAgain(context, op, command)
  if (hot !== null) return hot
  const { runtime } = context
  const transactions = context.transactions as Transactions<unknown>
  const waitMs = waitMsOf(op)
  const waits = waitMs > 0
  const deadline = runtime.monotonicMs() + Math.max(waitMs, limits.transactionLockMs)
  const call = callOf(op, command)
  // The claim id stays the same over all tries: so a commit whose answer was lost is recognised.
  const turn = newTurn(context)
  const request = new Claiming(op, command, turn.claimId, true, false)
  const begins = () => {
    // An earlier try was rolled back, and an effect that was handed over cannot run again.
    if (handedOver && turn.effectBegan) throw rolledBack(null)
    // The caller hung up while it waited for its turn: roll back, nothing has begun.
    if (flight.abandoned) throw released(new Error('The caller gave up before the effect began.'))
    decideRuns(flight, true)
  }
  for (let tries = 1; ; tries++) {
    turn.phase = 'begin' as Turn['phase']
    try {
      const landing = await transactions.run(
        (session) => inSession(context, op, command, session, effect, turn, request, begins),
        { ...call, claim: request },
      )
      if (landing === turn.done) noteSettled(context, command, landing)
      return landing
    } catch (error) {
      // The store may have ended the transaction while its effect still runs: its further work is lost.
      turn.end()
      if (isOnceError(error) && error.applied === 'maybe') turn.inDoubt = true
      const twin = meetsTwin(error, turn)
      // Waiting for a turn is no try: on SQLite another transaction has the only writer.
      const begun = turn.phase !== 'begin' || !isOnceError(error, 'store_busy')
      const mayRepeat = isOnceError(error) && mayRunAgain(error)
      // Only a commit whose answer was lost is looked for once more.
      if (mayRepeat && handedOver && turn.effectBegan && !turn.inDoubt) throw rolledBack(error)
      const again = mayRepeat && (!begun || tries < limits.transactionTries)
      if (again && (waits || !twin) && runtime.monotonicMs() < deadline) {
        await sleep(runtime, backoffMs(tries, RETRY, runtime.random()))
      } else if (twin) {
        return behindTwin(context, op, command)
      } else if (isVerdict(error) && error.verdict === 'released') return givenBack(op, error.error)
      else if (isVerdict(error)) throw error.error
      else throw turn.inDoubt && isOnceError(error) ? inDoubt(error) : error
    }
  }
}

function waitMsOf({ whileRunning }: Declared): number {
  return typeof whileRunning === 'string' ? 0 : whileRunning.waitMs
}

function callOf(op: Declared, command: Command): TransactionCall {
  const waitMs = waitMsOf(op)
  const waits = waitMs > 0
  return {
    timeoutMs: op.leaseMs,
    // A request that refuses a running twin still waits for the rows of its own effect, or for SQLite's only writer.
    lockMs: waits ? Math.min(waitMs, limits.transactionLockMs) : limits.transactionLockMs,
    refuseTwinOf: waits ? null : command.id,
  }
}

/** The holder of the record may only be replaying it: check before the caller gets "still running". */
async function behindTwin(
  context: Context,
  op: Declared,
  command: Command,
  timeoutMs: number = limits.storeCallMs,
): Promise<Landing> {
  const askedAt = context.runtime.monotonicMs()
  const { records, now } = await context.store.claims.read([command.id], { timeoutMs })
  const landing = decidedBy(context, op, command, { record: records[0] ?? null, now, askedAt }, false)
  if (landing !== null) return landing
  return stillRunning(context, command)
}

function givenBack(op: Declared, cause: unknown): Landing {
  const error = new OnceError('not_done', `${op.name} gave its claim back.`, { cause, retryAfterMs: 0 })
  return { kind: 'released', error }
}

/** Reported only after the commit: before it nothing has happened. */
function noteSettled({ events }: Context, { identity }: Command, landing: Landing): void {
  const state = landing.kind === 'executed' ? 'succeeded' : 'failed_terminal'
  events.emit({ kind: 'settled', identity, state, attempt: 1 })
}

/** Whatever waits while it claims, waits for the row of a twin. */
function meetsTwin(error: unknown, { phase }: Turn): boolean {
  return isOnceError(error, 'store_busy') && (phase === 'claiming' || error.details['twin'] === true)
}

/** Deadlocks, serialisation failures, lost connections: nothing happened, or the claim id will show it. */
function mayRunAgain(error: OnceError): boolean {
  return error.code === 'store_busy' || error.code === 'store_unavailable'
}

interface Turn {
  readonly claimId: string
  phase: 'begin' | 'claiming' | 'effect'
  /** The effect has begun, in this try or in an earlier one. */
  effectBegan: boolean
  /** How the effect of an earlier try ended, in case that it was committed after all. */
  done: Landing | null
  /** The answer to an earlier COMMIT was lost, and no later claim has shown its outcome. */
  inDoubt: boolean
  /** The transaction that a nested one is part of: they end together. */
  readonly outer: OpenTransaction | null
  /** Its transaction began elsewhere: the claim may see what that has written, before it is committed. */
  readonly inside: boolean
  /** Notifies the effect that its transaction is over. */
  end(): void
}

function rolledBack(cause: unknown): OnceError {
  return new OnceError('store_unavailable', 'The transaction was rolled back by its database.', {
    cause,
    applied: 'no',
  })
}

function newTurn({ runtime }: Context, inside = false, outer: OpenTransaction | null = null): Turn {
  const state = { phase: 'begin', effectBegan: false, done: null, inDoubt: false } as const
  return { ...state, claimId: runtime.newId(), inside, outer, end: () => {} }
}

async function inSession(
  context: Context,
  op: Declared,
  command: Command,
  session: Session<unknown>,
  effect: Effect,
  turn: Turn,
  request: ClaimRequest,
  begins: () => void,
): Promise<Landing> {
  // 1. The claim is the first statement: a twin waits for our row, and then replays.
  turn.phase = 'claiming'
  // A record that the outermost claim finds was committed by others; a nested one may see what its own outer wrote.
  const askedAt = turn.inside ? null : context.runtime.monotonicMs()
  const around = context.around ?? unwatched
  const { decision, record, now } = await around('claim', command, () => session.apply(request))
  turn.phase = 'effect'
  turn.inDoubt = false
  noteClaim(context, command, decision)
  switch (decision.kind) {
    case 'first_attempt':
    case 'reclaimed':
      begins()
      turn.effectBegan = true
      return await runInside(context, op, session, decision.lease, effect, turn)
    case 'replay_success':
    case 'replay_failure': {
      // 5. Our own commit, whose answer we lost.
      if (record?.claimId === turn.claimId && turn.done !== null) return turn.done
      const landing = decidedBy(context, op, command, { record, now, askedAt }, false)
      if (landing !== null) return landing
      throw new OnceError('store_busy', 'The record changed while it was read.')
    }
    default:
      return refusal(context, command, decision, record)
  }
}

async function runInside(
  context: Context,
  op: Declared,
  session: Session<unknown>,
  grant: Grant,
  effect: Effect,
  turn: Turn,
): Promise<Landing> {
  const transaction = new OpenTransaction(context.store, session, () => leaseOver(op.name))
  const end = () => transaction.end()
  turn.end = end
  turn.outer?.signal.addEventListener('abort', end, { once: true, signal: transaction.signal })
  const ground: Ground = { grant, signal: () => transaction.signal, check: () => transaction.check() }
  const given = contextOf(context, transaction, ground)
  const around = context.around ?? unwatched
  try {
    // 2. The effect, under a savepoint: a final failure undoes its writes, but is recorded itself.
    const act = async () => effect(given as never)
    const value = await inPart(session, (inner) => {
      transaction.session = inner
      Object.assign(given, { tx: inner.tx })
      return inTransaction(transaction, () => around('effect', grant, act)).catch((thrown: unknown) => {
        throw readable(thrown)
      })
    })
    const packed = packValue(op, { value })
    if (packed.problem !== null) reportNotStored(context, grant, packed.problem)
    // 3. The outcome, in the same transaction. 4. The store commits when we return.
    const pointer = packed.pointer ?? given.pointer
    const succeeded: Settlement = { state: 'succeeded', outcome: packed.outcome, ...noteOf(ground) }
    turn.done = { kind: 'executed', value, packed: { ...packed, pointer } }
    await settleInside(session, grant, succeeded, packed.pointer)
    return turn.done
  } catch (thrown) {
    if (!isVerdict(thrown) || thrown.verdict !== 'final') throw thrown
    const outcome = packFinal(op, thrown)
    turn.done = { kind: 'failed', data: outcome.data, cause: thrown.error }
    await settleInside(session, grant, { state: 'failed_terminal', outcome, ...noteOf(ground) }, null)
    return turn.done
  } finally {
    end()
  }
}

async function settleInside(
  session: Session<unknown>,
  grant: Grant,
  to: Settlement,
  pointer: Grant['pointer'],
): Promise<void> {
  const request: SettleRequest = { kind: 'settle', id: grant.id, grant, to, pointer }
  const { decision } = await (session.settleLast ?? session.apply)(request)
  if (decision.kind === 'lease_lost') throw leaseLost(grant.identity.operation, decision.state)
}

function contextOf(context: Context, transaction: OpenTransaction, ground: Ground): TransactionContext<unknown> {
  const { check, grant } = ground
  const { id, claimId, fence, identity, incarnation } = grant
  let messages = 0
  const attempt = new OwnContext(ground, async (pointer) => {
    await transaction.session.apply({ kind: 'attach', id, claimId, fence, incarnation, pointer })
  })
  return Object.assign(attempt, {
    tx: transaction.session.tx,
    outbox: {
      async add(message: OutboxMessage) {
        check()
        if (context.outbox === null) throw new OnceError('outbox_missing', 'This ledger has no outbox.')
        // Numbered in order: the same command adds the same messages under the same ids.
        const { sql, tx } = transaction.session
        await context.outbox.add(sql ?? tx, {
          ...message,
          id: effectKeyOf(id, incarnation, `outbox:${messages++}`),
        })
      },
    },
    async unique(scope: string, value: string) {
      check()
      const claim = { tenant: identity.tenant, scope, value, owner: id }
      const answer = await claimUnique((request) => transaction.session.apply(request), context.runtime, claim)
      if (answer.kind === 'taken') attempt.note({ taken: `${scope} ${value}`.slice(0, limits.noteChars) })
      return answer
    },
  })
}

/** Inside an open transaction of the same store: a savepoint of it, so that both commit together or not at all. */
export async function joinTransaction(
  context: Context,
  op: Declared,
  command: Command,
  effect: Effect,
  outer: OpenTransaction,
): Promise<Landing> {
  const { session } = outer
  const turn = newTurn(context, true, outer)
  try {
    const request = new Claiming(op, command, turn.claimId, true, false)
    return await inPart(session, (inner) => inSession(context, op, command, inner, effect, turn, request, () => {}))
  } catch (error) {
    throw isVerdict(error) ? error.error : error
  }
}

/** Inside a transaction that the user's ORM has open: it commits with that, or not at all. */
export async function withinTransaction(
  context: Context,
  op: Declared,
  command: Command,
  effect: Effect,
  handle: unknown,
): Promise<Landing> {
  const { orm } = context
  if (orm === null) {
    const text = `\`within\` of ${op.name} needs an ORM: createLedger({ store, transactions: kysely(db) }). Nothing was claimed.`
    throw new OnceError('bad_option', text)
  }
  const turn = newTurn(context, true)
  const request = new Claiming(op, command, turn.claimId, true, false)
  try {
    return await orm.within(
      handle,
      (session) => inSession(context, op, command, session, effect, turn, request, () => {}),
      callOf(op, command),
    )
  } catch (error) {
    turn.end()
    // The open transaction may hold the only connection: then nothing can be read beside it.
    if (meetsTwin(error, turn)) {
      return await behindTwin(context, op, command, limits.besideTransactionMs).catch((failure: unknown) => {
        if (isOnceError(failure)) return stillRunning(context, command)
        throw failure
      })
    }
    throw isVerdict(error) ? error.error : error
  }
}
