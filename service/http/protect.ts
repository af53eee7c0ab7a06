import type { FastifyBaseLogger } from 'fastify'
import type { Ledger, SqlTx } from 'onceonly'
import { createProtect } from 'onceonly/fastify'
import { reportTo } from '../logs.ts'
import { whoAsks } from '../workspaces/authenticate.ts'

/** Protects the handler of a route that takes an API key and an Idempotency-Key. */
export type Protect = ReturnType<typeof protectRoutes<SqlTx>>

export function protectRoutes<Tx = SqlTx>(log: FastifyBaseLogger, once: Ledger<Tx>) {
  return createProtect({ ledger: once, who: whoAsks, onError: reportTo(log) })
}
