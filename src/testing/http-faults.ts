import { OnceError } from '../ledger/core/errors.ts'
import type { Request } from '../ledger/core/request.ts'
import type { TransactionalStore } from '../ledger/store/port.ts'

type Store = TransactionalStore<unknown>

/** What goes wrong with a store. A case sets it at any time, also while a request is under way. */
export interface Trouble {
  /** It cannot be reached. */
  away?: boolean
  /** Runs before a request reaches it. */
  before?(request: Request): Promise<void>
  /** Runs between the work of a transaction and its commit; what it throws rolls it back. */
  beforeCommit?(): Promise<void>
}

/** The same store, with such trouble as there is at the moment of each call. */
export function troubled(store: Store, trouble: Trouble): Store {
  const check = async () => {
    if (trouble.away === true) throw new OnceError('store_unavailable', 'The link was cut.', { applied: 'no' })
  }
  return {
    ...store,
    claims: {
      ...store.claims,
      async apply(request, call) {
        await check()
        await trouble.before?.(request)
        return store.claims.apply(request, call)
      },
    },
    queries: {
      ...store.queries,
      async get(id, call) {
        await check()
        return store.queries.get(id, call)
      },
    },
    transactions: {
      async run(work, call) {
        await check()
        return store.transactions.run(async (session) => {
          // COMMIT is sent apart from the last settle, so that there is a moment before it.
          const result = await work({ ...session, settleLast: undefined })
          await check()
          await trouble.beforeCommit?.()
          return result
        }, call)
      },
    },
  }
}
