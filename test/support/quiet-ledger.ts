import { createLedger, type OutboxPort, type Store } from 'onceonly'

/** A ledger that does nothing by itself, for tests of what is made from one; with the outbox of another ledger, if given. */
export function quietLedger<S extends Store>(store: S, outbox?: OutboxPort<never>) {
  const ledger = createLedger({ store, background: false })
  if (outbox !== undefined) ledger.setOutbox(outbox)
  return ledger
}
