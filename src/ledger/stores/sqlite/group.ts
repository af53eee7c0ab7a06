import { createRuntime } from '../../../runtime/runtime.ts'
import type { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Request, SettleRequest } from '../../core/request.ts'
import type { GroupCommit } from '../../store/group-commit.ts'
import { createGroupCommit } from '../../store/group-commit.ts'
import type { Applied } from '../../store/port.ts'
import { requestRules } from '../../store/request-group.ts'
import type { Connection } from './connection.ts'
import { inSavepoint } from './savepoint.ts'
import type { WriterQueue } from './writer.ts'

/** Short synchronous writes that share one commit, and one wait for the disk. */
export type Member = RequestMember | WorkMember

/** Requests of one flush are decided together, by the decider of the first. */
export interface RequestMember {
  readonly request: Request
  readonly decider: Decider
}

export interface WorkMember {
  readonly request: null
  /** May be called again after what it wrote was undone. */
  work(writer: Connection): unknown
}

export interface Decider {
  /**
   * Decides one settle by a single statement, which commits by itself. Null when nothing was written, and the request has
   * to be decided in a transaction.
   */
  settleAlone(writer: Connection, request: SettleRequest): Applied | null
  /** First in the write transaction, which it may begin again; answers in order of the requests. */
  decide(writer: Connection, requests: readonly Request[]): readonly Applied[]
  /** What was decided last is on the disk. */
  committed(): void
}

/** How the group uses the only writer. */
export interface GroupWriter {
  /** False when another process holds the lock. Throws when the file cannot be used. */
  begin(): boolean
  /** Runs one statement without a transaction of its own; null when it wrote nothing, for certain. */
  alone<T>(statement: (writer: Connection) => T | null): T | null
  /** Runs the work in the transaction that `begin` has begun, and commits. Undoes all of it when it throws. */
  commit<T>(work: (writer: Connection) => T): T
  /** The store's own error for one of SQLite's. */
  translate(error: unknown): unknown
  late(waitedMs: number): OnceError
}

/** Of a request its answer, of other work what it returned. */
export type Ended = Applied | { readonly value: unknown } | { readonly error: unknown }

/**
 * The work of another wing counts as this many bytes, so that 64 of them fill a group: each takes well below a
 * millisecond, during which the sockets and timers of this process wait.
 */
const WORK_BYTES = limits.batchBytes / 64
/** The turn lasts as long as its members wait; each of them has a deadline of its own. */
const TURN_MS = 2 ** 31 - 1
/** Gives a turn back that came when every member had passed its deadline. */
const ALL_LEFT = new Error('Every member has left.')

export function createWriterGroup(queue: WriterQueue, writer: GroupWriter): GroupCommit<Member, Ended> {
  function commit(members: readonly Member[]): readonly Ended[] {
    const ended: Ended[] = []
    const asked = members.filter((member) => member.request !== null)
    const decider = asked[0]?.decider
    writer.commit((connection) => {
      const requests = asked.map(({ request }) => request)
      const answers = decider?.decide(connection, requests) ?? []
      const works = members.filter((member) => member.request === null)
      const done =
        members.length === 1 ? works.map(({ work }) => ({ value: work(connection) })) : attemptAll(connection, works)
      let place = 0
      let worked = 0
      for (const { request } of members) {
        ended.push(request !== null ? (answers[place++] as Applied) : (done[worked++] as Ended))
      }
    })
    decider?.committed()
    return ended
  }

  /**
   * Together at first, and each by itself only when one of them fails: within a savepoint SQLite copies every page when it is
   * changed for the first time, and members of one flush change the same pages. Work may therefore be called twice.
   */
  function attemptAll(connection: Connection, works: readonly WorkMember[]): readonly Ended[] {
    const together =
      works.length < 2
        ? null
        : inSavepoint(
            connection,
            () => connection.db.isTransaction,
            () => works.map(({ work }) => ({ value: work(connection) })),
          )
    return together !== null && 'value' in together
      ? together.value
      : works.map((member) => attempt(connection, member))
  }

  /** Throws when not only the member's work is lost, but the transaction of all. */
  function attempt(connection: Connection, { work }: WorkMember): Ended {
    const isOwn = () => connection.db.isTransaction
    const ended = inSavepoint(connection, isOwn, () => work(connection))
    return 'error' in ended ? { error: writer.translate(ended.error) } : ended
  }

  return createGroupCommit<Member, Ended>(createRuntime(), {
    // A flush holds the only writer and ends within one turn of the event loop: a second lane would only wait.
    lanes: 1,
    flush: commit,
    flushNow: (member) => {
      if (!queue.isFree()) return undefined
      const { request } = member
      if (request !== null && request.kind === 'settle') {
        const { decider } = member
        const answer = writer.alone((connection) => decider.settleAlone(connection, request))
        if (answer !== null) return answer
      }
      return writer.begin() ? commit([member])[0] : undefined
    },
    sizeOf: (member) => (member.request === null ? WORK_BYTES : requestRules.sizeOf(member.request)),
    keyOf: (member) => member.request?.id ?? null,
    priorityOf: (member) => (member.request === null ? 2 : requestRules.priorityOf(member.request)),
    errorOf: (ended) => ('error' in ended ? ended.error : null),
    // Each member is undone alone.
    isSpoiled: () => false,
    isHeld: requestRules.isHeld,
    turn: async (flush, isWaiting) => {
      const begin = () => {
        if (!isWaiting()) throw ALL_LEFT
        return writer.begin()
      }
      // The commit ends before `flush` returns, so that the writer is free again; only the answers come later.
      const flown: Promise<void>[] = []
      try {
        await queue.run({ lane: 'batch', waitMs: TURN_MS, late: writer.late, begin }, () => void flown.push(flush()))
      } catch (error) {
        // No failure of the store: what came since then gets a turn of its own.
        if (error !== ALL_LEFT) throw error
      }
      await flown[0]
    },
    late: writer.late,
  })
}
