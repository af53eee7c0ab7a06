import type { FastifyInstance } from 'fastify'
import type { Ledger, RecordView } from 'onceonly'
import type { Guard } from 'onceonly/guard'
import type { Static } from 'typebox'
import type { InputTypes } from '../http/input.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import { forgetOriginal } from './accept.ts'
import { type lock, readLock, releaseLock } from './document.ts'
import type { GuardedMessage } from './events.ts'
import { isoOf } from './message.ts'

interface Parts extends Pick<ServerParts, 'base'> {
  readonly once: Ledger<unknown>
  readonly guard: Guard<GuardedMessage>
}

/** A lock without a message is young, so it stands among the newest records; the search stops somewhere. */
const PAGES_MOST = 20
/** Locks belong to the content, not to its sender. */
const ANY_CALLER = '*'
const OPERATION = 'guard.messages'

/** `GET|DELETE /api/admin/guard/locks/{hash}`: what a lock stands for, and its release before its window ends. */
export function addLocks(server: FastifyInstance, { once, base, guard }: Parts): void {
  const typed = server.withTypeProvider<InputTypes>()
  typed.get('/api/admin/guard/locks/:hash', routeOptions(readLock), async (request, reply) => {
    const view = await find(request.params.hash)
    return view === null ? reply.callNotFound() : lockOf(view, await base.now())
  })

  typed.delete('/api/admin/guard/locks/:hash', routeOptions(releaseLock), async (request, reply) => {
    const { hash } = request.params
    const view = await find(hash)
    const freed = view !== null && (await guard.release({ tenant: view.record.identity.tenant, hash }, 'operator'))
    // What went out without its lock is held by the database, whether or not there is a lock by now.
    const forgotten = await forgetOriginal(base, hash)
    return freed || forgotten ? reply.code(204).send() : reply.callNotFound()
  })

  /** The hash names no workspace. Its original does; a lock whose message does not exist yet is looked for in the ledger. */
  async function find(hash: string): Promise<RecordView | null> {
    if (!/^[0-9a-f]{64}$/.test(hash)) return null
    const text = `select workspace_id from messages where id =
      (select message_id from message_originals where lock_hash = ?)`
    const [row] = await base.sql.query<{ workspace_id: string }>(text, [base.sql.lookup(hash)])
    if (row !== undefined) {
      return once.get({ tenant: row.workspace_id, caller: ANY_CALLER, operation: OPERATION, key: hash })
    }
    let cursor: string | null = null
    for (let page = 0; page < PAGES_MOST; page++) {
      const { rows, cursor: next } = await once.list({ operation: OPERATION, key: hash }, { limit: 1, cursor })
      if (rows[0] !== undefined || next === null) return rows[0] ?? null
      cursor = next
    }
    return null
  }
}

function lockOf({ record }: RecordView, now: number): Static<typeof lock> {
  const { identity, state, pointer, claimedAt, policy } = record
  return {
    hash: identity.key,
    workspaceId: identity.tenant,
    state,
    messageId: pointer?.id ?? null,
    claimedAt: isoOf(claimedAt),
    ageMs: now - claimedAt,
    /** A lock never ends while its holder still runs. */
    expiresAt: isoOf(claimedAt + policy.retainMs),
  }
}
