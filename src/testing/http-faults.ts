import { OnceError } from '../ledger/core/errors.ts'
import type { Request } from '../ledger/core/request.ts'
import type { TransactionalStore } from '../ledger/store/port.ts'

/** Stores that behave badly in one way, around one that behaves well. */

type Store = TransactionalStore<unknown>

/** `before` runs before every request reaches the store, and `after` before its answer is returned. */
export function withSteps(
  store: Store,
  steps: { before?(request: Request): Promise<void>; after?(request: Request): Promise<void> },
): Store {
  return {
    ...store,
    claims: {
      ...store.claims,
      async apply(request, call) {
        await steps.before?.(request)
        const applied = await store.claims.apply(request, call)
        await steps.after?.(request)
        return applied
      },
    },
  }
}

/** Cannot be reached while `isDown` says so. */
export function unreachable(store: Store, isDown: () => boolean): Store {
  const away = () => new OnceError('store_unavailable', 'The link was cut.', { applied: 'no' })
  const check = async () => {
    if (isDown()) throw away()
  }
  return {
    ...withSteps(store, { before: check }),
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
        return store.transactions.run(work, call)
      },
    },
  }
}

/** Does something of its own between the work of a transaction and its commit; what it throws rolls it back. */
export function beforeCommit(store: Store, step: () => Promise<void>): Store {
  return {
    ...store,
    transactions: {
      run: (work, call) =>
        store.transactions.run(async (session) => {
          const result = await work(session)
          await step()
          return result
        }, call),
    },
  }
}
