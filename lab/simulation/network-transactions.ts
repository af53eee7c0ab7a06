import type { Fence } from '../../src/ledger/core/identity.ts'
import type { DecisionOf, Request } from '../../src/ledger/core/request.ts'
import type {
  AppliedDecision,
  Session,
  TransactionalStore,
  TransactionCall,
  Transactions,
} from '../../src/ledger/store/port.ts'
import type { MemoryTx } from '../../src/ledger/stores/memory/index.ts'
import type { Wire } from './wire.ts'
import { unavailable } from './wire.ts'

/** A connection that holds a transaction: every statement goes over the wire, and a broken one rolls it back. */
interface Connection {
  /** The store that it leads to: when that was lost, so is the connection. */
  home: TransactionalStore<MemoryTx>
  /** Why nothing more can be done in it; null while it lives. */
  broken: Error | null
  committing: boolean
  /** What was granted in it. */
  readonly fences: Fence[]
}

export function linkTransactions(wire: Wire): Transactions<MemoryTx> {
  return { run: (work, call) => runOver(wire, work, call) }
}

function runOver<T>(wire: Wire, work: (session: Session<MemoryTx>) => Promise<T>, call: TransactionCall): Promise<T> {
  const { simulation, process, random } = wire
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const connection: Connection = { home: wire.store(), broken: null, committing: false, fences: [] }
  const fail = (error: unknown) => {
    reject(error as Error)
    // Later, when the process has understood it.
    simulation.timer(0, () => wire.transactionFailed(connection.fences))
  }
  const limit = process.runtime.setTimer(
    call.timeoutMs + call.lockMs,
    () => {
      const tooLong = unavailable(connection.committing ? 'maybe' : 'no', 'the transaction took too long')
      // A commit that is under way cannot be called back.
      if (!connection.committing) connection.broken ??= tooLong
      fail(tooLong)
    },
    false,
  )
  const answer = (act: () => void) =>
    wire.deliver(() => {
      limit.cancel()
      act()
    })
  const begin = wire.draw()
  if (begin === 'refused' || begin === 'lost_request') {
    wire.note(`${wire.name} begin: ${begin}`)
    answer(() => fail(unavailable('no', 'no connection')))
    return promise
  }
  const commit = wire.draw()
  if (commit !== 'through') wire.note(`${wire.name} commit will be: ${commit}`)
  const inside = async (session: Session<MemoryTx>): Promise<T> => {
    wire.beginTransaction()
    await new Promise<void>((arrived) => wire.deliver(arrived))
    const result = await work(overWire(wire, session, connection))
    connection.committing = true
    await simulation.after(wire.delayMs())
    breakIfLost(wire, connection)
    if (connection.broken !== null) throw connection.broken
    if (commit === 'refused' || commit === 'lost_request' || wire.isCut()) throw unavailable('maybe', 'commit lost')
    return result
  }
  simulation.timer(wire.delayMs(), () => {
    void wire
      .store()
      .transactions.run(inside, call)
      .then(
        (value) => {
          if (commit !== 'lost_answer' && !wire.isCut()) answer(() => resolve(value))
          else if (random.chance(0.5)) answer(() => fail(unavailable('maybe', 'answer to the commit lost')))
        },
        (error: unknown) => answer(() => fail(error)),
      )
  })
  return promise
}

function breakIfLost(wire: Wire, connection: Connection): void {
  if (wire.store() !== connection.home) connection.broken ??= unavailable('no', 'the store was lost')
}

function overWire(wire: Wire, session: Session<MemoryTx>, connection: Connection): Session<MemoryTx> {
  function apply<R extends Request>(request: R): Promise<AppliedDecision<DecisionOf<R>>> {
    const { promise, resolve, reject } = Promise.withResolvers<AppliedDecision<DecisionOf<R>>>()
    const fate = wire.draw()
    if (fate !== 'through' && fate !== 'twice') {
      wire.note(`${wire.name} ${request.kind} in a transaction: connection broken`)
      connection.broken = unavailable('no', 'connection broken')
    }
    wire.simulation.timer(wire.delayMs(), () => {
      breakIfLost(wire, connection)
      if (connection.broken !== null) {
        const { broken } = connection
        wire.deliver(() => reject(broken))
        return
      }
      void wire
        .inSession(() => session.apply(request))
        .then(
          (applied) => {
            const { decision } = applied as AppliedDecision
            if ('lease' in decision) connection.fences.push(decision.lease.fence)
            wire.deliver(() => resolve(applied))
          },
          (error: unknown) => wire.deliver(() => reject(error as Error)),
        )
    })
    return promise
  }
  return { tx: session.tx, apply, savepoint: (work) => session.savepoint(work) }
}
