import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Ledger, SqlTx } from 'onceonly'
import { idempotent } from 'onceonly/fastify'
import { reportTo } from '../logs.ts'
import { whoAsks } from '../workspaces/authenticate.ts'

/** Makes the hooks of a route that takes an API key and an Idempotency-Key. */
export type Protect = ReturnType<typeof protectRoutes<SqlTx>>

/**
 * Once for the whole server, not in a scope of each system: it also reads the bodies, and so JSON that is not UTF-8 is
 * refused on every route, instead of becoming another text without a word.
 */
export function protectRoutes<Tx = SqlTx>(server: FastifyInstance, once: Ledger<Tx>) {
  return idempotent<Tx, FastifyRequest>(server, { ledger: once, who: whoAsks, onError: reportTo(server.log) })
}
