import type { Connection } from './connection.ts'
import type { WriterQueue, WriterTurn } from './writer.ts'
import { tooManyWait } from './writer.ts'

/** Short synchronous writes. Whoever waits for the writer at the same time shares one commit, and one look at the disk. */
export interface GroupCommit {
  write<T>(waitMs: number, work: (writer: Connection) => T): Promise<T>
}

/** How a group writes. */
export interface GroupWriter extends Pick<WriterTurn, 'begin' | 'late'> {
  /** Runs the members in their order, once `begin` has the lock, and commits; says to each what became of it. */
  run(members: readonly GroupMember[]): void
}

export interface GroupMember {
  work(writer: Connection): unknown
  resolve(value: unknown): void
  reject(error: unknown): void
}

interface Waiting extends GroupMember {
  /** Null in the usual case: it was taken at once. */
  timer: NodeJS.Timeout | null
  taken: boolean
}

/** A member takes well below a millisecond: sockets and timers of this process do not wait longer for one commit. */
const MEMBERS_MOST = 64

/** The turn lasts as long as its members wait, each of whom has a time of its own. */
const TURN_MS = 2 ** 31 - 1

export function createGroupCommit(queue: WriterQueue, group: GroupWriter): GroupCommit {
  const waiting: Waiting[] = []
  let called = false
  const turn: WriterTurn = { lane: 'batch', waitMs: TURN_MS, late: group.late, begin }

  function begin(): boolean {
    if (waiting.length === 0) throw new Error('Everybody has left.')
    return group.begin()
  }

  function call(): void {
    if (called || waiting.length === 0) return
    called = true
    // Not awaited by the members: they are told by the group, or by their own timers.
    void queue.run(turn, runAll).catch(refuseAll).finally(call)
  }

  function runAll(): void {
    called = false
    group.run(take(MEMBERS_MOST))
  }

  function take(most: number): readonly Waiting[] {
    const members = waiting.splice(0, most)
    for (const member of members) {
      member.taken = true
      if (member.timer !== null) clearTimeout(member.timer)
    }
    return members
  }

  /** There is no hope of ever beginning. */
  function refuseAll(error: unknown): void {
    called = false
    for (const { reject } of take(waiting.length)) reject(error)
  }

  function watch(member: Waiting, waitMs: number): void {
    const since = performance.now()
    member.timer = setTimeout(() => {
      waiting.splice(waiting.indexOf(member), 1)
      member.reject(group.late(performance.now() - since))
    }, waitMs)
  }

  return {
    write: <T>(waitMs: number, work: (writer: Connection) => T) =>
      new Promise<T>((resolve, reject) => {
        const full = tooManyWait(waiting.length)
        if (full !== null) return reject(full)
        const member: Waiting = {
          work,
          resolve: resolve as (value: unknown) => void,
          reject,
          timer: null,
          taken: false,
        }
        waiting.push(member)
        call()
        if (!member.taken) watch(member, waitMs)
      }),
  }
}
