import type { Ledger, SqlTx, Store } from 'onceonly'
import { createOperate, type Operate } from 'onceonly/operate'
import { bothStores } from './console/both.ts'
import { forgetOriginal } from './messages/accept.ts'
import type { Base } from './store.ts'
import { GUARD_NAME } from './watch.ts'

interface Parts {
  readonly once: Ledger<SqlTx>
  /** Where claims are in a store of their own; null where there is one store. */
  readonly leased: { readonly store: Store; readonly ledger: Ledger<unknown> } | null
  readonly base: Base
}

/** What operators ask and do on this server, through the console and the API. */
export function operateOn({ once, leased, base }: Parts): Operate {
  const main = createOperate({ store: base.store, ledger: once })
  // The claims' store has no place for an audit, so that it is written where everything else is.
  const operate = leased === null ? main : bothStores(main, createOperate({ ...leased, audit: main.audit }))
  return {
    ...operate,
    async forget(actor, identity, options) {
      await operate.forget(actor, identity, options)
      // What went out without its lock is held by the database, too.
      if (identity.operation === `guard.${GUARD_NAME}`) await forgetOriginal(base, identity.key)
    },
  }
}
