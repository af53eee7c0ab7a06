import type { Ledger, Store } from 'onceonly'
import { type Admin, createAdmin } from 'onceonly/admin'
import { forgetOriginal } from '../messages/accept.ts'
import type { ServerParts } from '../parts.ts'
import { GUARD_NAME } from '../watch.ts'
import { bothStores } from './both.ts'

interface Parts extends Pick<ServerParts, 'once' | 'base'> {
  /** Where claims are in a store of their own; null where there is one store. */
  readonly leased: { readonly store: Store; readonly ledger: Ledger<unknown> } | null
}

/** The records, messages, sagas, runs and streams of this server, for the commands of operators. */
export function adminOn({ once, leased, base }: Parts): Admin {
  const main = createAdmin({ store: base.store, ledger: once })
  // The claims' store has no place for an audit, so that it is written where everything else is.
  const admin = leased === null ? main : bothStores(main, createAdmin({ ...leased, audit: main.audit }))
  return {
    ...admin,
    async forget(identity, options) {
      await admin.forget(identity, options)
      // What went out without its lock is held by the database, too.
      if (identity.operation === `guard.${GUARD_NAME}`) await forgetOriginal(base, identity.key)
    },
  }
}
