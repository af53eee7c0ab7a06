import { createRuntime } from '../../../runtime/runtime.ts'
import type { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Request } from '../../core/request.ts'
import type { GroupCommit } from '../../store/group-commit.ts'
import { createGroupCommit } from '../../store/group-commit.ts'
import type { Applied, AppliedDecision } from '../../store/port.ts'
import { requestRules } from '../../store/request-group.ts'
import type { Connection } from './connection.ts'
import { inSavepoint } from './savepoint.ts'
import type { WriterQueue } from './writer.ts'

/** Short synchronous writes that share one commit, and one wait for the disk. */
export type Member = Request | WorkMember

export interface WorkMember {
  readonly kind: 'work'
  /** May be called again after what it wrote was undone. */
  work(writer: Connection): unknown
}

export interface Decider {
  /**
   * Decides one request, committed before it returns. Null when another process holds the lock, and nothing was written.
   * Throws the error of a request that cannot be stored.
   */
  alone(request: Request): AppliedDecision | null
  /** First in the write transaction, which it may begin again; answers in order of the requests. */
  decide(writer: Connection, requests: readonly Request[]): readonly Applied[]
  /** What was decided last is on the disk. */
  committed(): void
}

/** How the group uses the only writer. */
export interface GroupWriter {
  /** False when another process holds the lock. Throws when the file cannot be used. */
  begin(): boolean
  /** Null until there is one, before the first request. */
  decider: Decider | null
  /** Runs the work in the transaction that `begin` has begun, and commits. Undoes all of it when it throws. */
  commit<G, T>(work: (writer: Connection, given: G) => T, given: G): T
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
    const ended = writer.commit(perform, members)
    writer.decider?.committed()
    return ended
  }

  function perform(connection: Connection, members: readonly Member[]): readonly Ended[] {
    const requests = members.filter((member): member is Request => member.kind !== 'work')
    const works = members.filter((member): member is WorkMember => member.kind === 'work')
    const answers = requests.length === 0 ? [] : (writer.decider?.decide(connection, requests) ?? [])
    const done =
      members.length === 1 ? works.map(({ work }) => ({ value: work(connection) })) : attemptAll(connection, works)
    let place = 0
    let worked = 0
    return members.map(({ kind }) => (kind === 'work' ? done[worked++] : answers[place++]) as Ended)
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
      if (queue.serving) return undefined
      if (member.kind !== 'work') return writer.decider?.alone(member) ?? undefined
      return writer.begin() ? commit([member])[0] : undefined
    },
    sizeOf: (member) => (member.kind === 'work' ? WORK_BYTES : requestRules.sizeOf(member)),
    keyOf: (member) => (member.kind === 'work' ? null : member.id),
    priorityOf: (member) => (member.kind === 'work' ? 2 : requestRules.priorityOf(member)),
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
