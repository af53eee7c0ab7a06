import type { Ledger, OutboxPort, SqlTx } from 'onceonly'
import type { Config } from './config.ts'
import type { Protect } from './http/protect.ts'
import type { Log } from './logs.ts'
import type { Base } from './store.ts'
import type { Watch } from './watch.ts'
import type { Quotas } from './workspaces/quotas.ts'
import type { Workspaces } from './workspaces/workspaces.ts'

/** What the systems of this server share; each names the parts that it needs. */
export interface ServerParts {
  readonly base: Base
  /** Of the store that has the tables of the systems. */
  readonly once: Ledger<SqlTx>
  readonly protect: Protect
  readonly outbox: OutboxPort<SqlTx>
  readonly workspaces: Workspaces
  readonly quotas: Quotas
  readonly config: Config
  readonly operatorToken: string
  readonly log: Log
  readonly watch: Watch
}
