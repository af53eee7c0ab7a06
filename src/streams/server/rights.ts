import { OnceError } from '../../ledger/core/errors.ts'
import { badOption, checkOptions } from '../../ledger/core/option-names.ts'
import type { OpenSession } from './session-host.ts'
import type { SessionTable } from './session-table.ts'

/** Sessions for which all of these are true. */
export interface SessionChoice {
  /** As the region names it, where `roomOf` gives other names. @default every room */
  readonly room?: string
  /** The client's own name. @default every client */
  readonly client?: string
  /** The `user` of their connection. @default every user */
  readonly user?: string
}

const sessionChoice = { room: true, client: true, user: true } satisfies Record<keyof SessionChoice, true>

/** A close reason of a WebSocket has 123 bytes. */
const REASON_CHARS_MOST = 120

/** What a server does with sessions whose rights have changed. It knows those of its process. */
export interface Rights {
  kick(which: SessionChoice, reason?: string): number
  review(which?: SessionChoice): Promise<number>
}

export function createRights(sessions: SessionTable): Rights {
  function chosen(caller: string, which: SessionChoice): readonly OpenSession[] {
    checkOptions(caller, which, sessionChoice)
    const { room, client, user } = which
    return (room === undefined ? sessions.all() : sessions.in(room)).filter(
      (session) =>
        (client === undefined || session.claim?.client === client) && (user === undefined || session.user === user),
    )
  }

  return {
    kick(which, reason = 'removed') {
      const found = chosen('region.kick', which)
      if (which.client === undefined && which.user === undefined) {
        throw new OnceError('bad_option', 'region.kick needs a `client` or a `user`; `stop` ends all sessions.')
      }
      if (typeof reason !== 'string' || reason.length > REASON_CHARS_MOST) {
        badOption('region.kick', 'reason', `must be a text of at most ${REASON_CHARS_MOST} characters`)
      }
      for (const session of found) session.end('notAllowed', reason)
      return found.length
    },
    async review(which = {}) {
      const ended = await Promise.all(chosen('region.review', which).map((session) => session.review()))
      return ended.filter(Boolean).length
    },
  }
}
