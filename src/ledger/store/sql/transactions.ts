import { randomUUID } from 'node:crypto'
import type { AppliedWord } from '../../core/errors.ts'
import { OnceError } from '../../core/errors.ts'
import type { DecisionOf, Request, SettleRequest } from '../../core/request.ts'
import type { Deadline } from '../deadline.ts'
import { inTime } from '../deadline.ts'
import type { Life, Reason } from '../life.ts'
import type { AppliedDecision, Session, TransactionCall, Transactions } from '../port.ts'
import type { SqlTx } from '../sql.ts'
import type { Calls, HeldConnection, ServerErrors } from './calls.ts'

/** An open transaction, as the store sees it. */
export interface OpenTx<Tx extends SqlTx> {
  readonly handle: Tx
  /** Runs the effect, and ends when the savepoints that it opened have ended. */
  outermost<T>(work: () => Promise<T>): Promise<T>
  /** Settles when no statement is under way. */
  idle(): Promise<void>
  /** From here on everything is refused, also what still waits for its turn. */
  close(why: Reason): void
}

/** One transaction on one connection. */
export interface Ground<C extends HeldConnection> {
  readonly connection: C
  readonly call: TransactionCall
  readonly deadline: Deadline
  /** Names this transaction and no other. */
  readonly mark: string
  /** What a lost answer means at this moment: `maybe` from the moment in which a COMMIT is sent. */
  applied: AppliedWord
  /** Why it was ended, once its time is up. */
  late: OnceError | null
  /** The answer to `call.claim`, where it was sent with what began the transaction. */
  claimed: AppliedDecision | null
  /** COMMIT was sent with the last settle: whatever the answer is, nothing is left to commit or to undo. */
  over: boolean
}

/** How a server does it. */
export interface TransactionSteps<
  C extends HeldConnection & { readonly waiting: boolean },
  Tx extends SqlTx,
  Open extends OpenTx<Tx>,
> {
  readonly errors: ServerErrors
  borrow(deadline: Deadline): Promise<C>
  begin(ground: Ground<C>): Promise<void>
  open(ground: Ground<C>): Open
  /** Decides one request; collects the records whose waiters are to be notified after the commit. */
  apply(open: Open, request: Request, woken: string[]): Promise<AppliedDecision>
  /** The last settle together with COMMIT; null when they have to be sent one after the other. */
  settleLast?(ground: Ground<C>, open: Open, request: SettleRequest): Promise<AppliedDecision> | null
  /** The dangerous region: until its answer comes, the outcome of the transaction is unknown. */
  commit(ground: Ground<C>, open: Open): Promise<void>
  /** Rolls back. The error that it answers, when there is no transaction of ours any more, says more than the effect's. */
  undo(ground: Ground<C>): Promise<OnceError | null>
  /** Errors of the effect pass unchanged, unless they only repeat that the transaction itself could not continue. */
  translate(error: unknown, ground: Ground<C>): unknown
  committed(connection: C, woken: readonly string[]): Promise<void>
  /** What may have held up the work of a transaction that took too long; empty when there is no sign of it. */
  heldUpBy?(): string
}

/** Transactions on a database server: a connection each, from BEGIN to the answer of COMMIT, within the caller's time. */
export function createServerTransactions<
  C extends HeldConnection & { readonly waiting: boolean },
  Tx extends SqlTx,
  Open extends OpenTx<Tx>,
>({ call: inCall, fault }: Pick<Calls<C>, 'call' | 'fault'>, steps: TransactionSteps<C, Tx, Open>): Transactions<Tx> {
  function sessionOf(ground: Ground<C>, open: Open, woken: string[]): Session<Tx> {
    async function apply<R extends Request>(request: R): Promise<AppliedDecision<DecisionOf<R>>> {
      const { claimed, call } = ground
      if (claimed !== null && request === (call.claim as Request)) return claimed as AppliedDecision<DecisionOf<R>>
      try {
        return (await steps.apply(open, request, woken)) as AppliedDecision<DecisionOf<R>>
      } catch (error) {
        // Nothing of a transaction is applied before its COMMIT was sent.
        throw fault(error, 'no')
      }
    }

    return {
      tx: open.handle,
      apply,
      settleLast: async (request) =>
        ((await steps.settleLast?.(ground, open, request)) as AppliedDecision<DecisionOf<SettleRequest>> | undefined) ??
        (await apply(request)),
      savepoint: open.handle.inSavepoint,
    }
  }

  function expire(ground: Ground<C>): OnceError {
    const { connection, deadline, applied } = ground
    const slowWork = new OnceError(
      'transaction_too_long',
      `A transaction took more than ${deadline.timeoutMs} ms.${steps.heldUpBy?.() ?? ''}`,
    )
    ground.late ??= connection.waiting ? steps.errors.timeoutError(deadline.timeoutMs, applied) : slowWork
    connection.destroy(ground.late)
    return ground.late
  }

  async function runOn<T>(ground: Ground<C>, work: (session: Session<Tx>) => Promise<T>): Promise<T> {
    await steps.begin(ground)
    const open = steps.open(ground)
    const woken: string[] = []
    let result: T
    try {
      // The work may continue after its time is up: its result is dropped then, and its handle refuses everything.
      result = await inTime(
        open.outermost(() => work(sessionOf(ground, open, woken))),
        ground.deadline,
        () => ground.late ?? expire(ground),
      )
      // A statement that the work did not wait for still belongs to it.
      await open.idle()
    } catch (error) {
      open.close(ground.late ?? ended)
      if (ground.over) throw error
      throw (await steps.undo(ground)) ?? steps.translate(error, ground)
    }
    open.close(ended)
    if (!ground.over) await steps.commit(ground, open)
    await steps.committed(ground.connection, woken)
    return result
  }

  return {
    run: (work, call) =>
      inCall(call, async (deadline) => {
        const connection = await steps.borrow(deadline)
        const ground: Ground<C> = {
          connection,
          call,
          deadline,
          mark: randomUUID(),
          applied: 'no',
          late: null,
          claimed: null,
          over: false,
        }
        const off = deadline.onPassed(() => expire(ground))
        try {
          return await runOn(ground, work)
        } finally {
          off()
          connection.release()
        }
      }),
  }
}

export function ended(): OnceError {
  return new OnceError('transaction_aborted', 'The transaction is over; its session cannot be used any more.')
}

export function runningTwin(): OnceError {
  const details = { twin: true }
  return new OnceError('store_busy', 'Another transaction runs for this record right now.', { details })
}

/** One statement after the other, in the order of the calls: the driver would only queue them too, and warn about it. */
export interface Turns {
  send<T>(statement: () => Promise<T>): Promise<T>
  /** Settles when no statement is under way. */
  idle(): Promise<void>
}

export function createTurns(life: Life): Turns {
  let turn: Promise<unknown> = Promise.resolve()
  return {
    async send(statement) {
      life.check()
      const mine = turn.then(() => {
        life.check()
        return statement()
      })
      turn = mine.catch(() => undefined)
      return mine
    },
    idle: async () => {
      await turn
    },
  }
}
