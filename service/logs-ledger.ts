import type { Listener } from 'onceonly'
import { ledgerLine } from 'onceonly/admin'
import type { Log } from './logs.ts'

/** Writes down what happens in the ledger, in the words of this server: its tenants are workspaces. */
export function ledgerLog(log: Log): Listener {
  return (event) => {
    const { level, tenant, error, ...line } = ledgerLine(event)
    const workspace = tenant === undefined ? {} : { workspace: tenant }
    log[level]({ ...line, ...workspace, ...(error === undefined ? {} : { err: error }) })
  }
}
