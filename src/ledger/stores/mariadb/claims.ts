import { createRuntime } from '../../../runtime/runtime.ts'
import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Request } from '../../core/request.ts'
import type { Applied } from '../../store/port.ts'
import type { GroupedClaims } from '../../store/request-group.ts'
import { createRequestGroup } from '../../store/request-group.ts'
import type { Calls } from '../../store/sql/calls.ts'
import { answerUnchanged } from '../../store/sql/decide.ts'
import { unfit } from '../../store/sql/fit.ts'
import type { Lanes } from '../../store/sql/lanes.ts'
import type { Connection } from './connection.ts'
import { inTransaction } from './connection.ts'
import { decideRound, readRecords } from './decide.ts'
import { errors } from './errors.ts'
import type { Watchers } from './watch.ts'

export interface ClaimParts {
  readonly calls: Calls<Connection>
  readonly lanes: Lanes<Connection>
  readonly laneCount: number
  readonly watchers: Watchers
}

/** Rounds for rows that keep appearing and disappearing; more than a few is a fight, not a race. */
export const ROUNDS = 5

export function createClaims({
  calls,
  lanes,
  laneCount,
  watchers,
}: ClaimParts): GroupedClaims & { stop(): Promise<void> } {
  /**
   * Rows that another transaction holds are passed over and answered `store_busy`: the group repeats them apart. When a
   * statement is refused, nothing of the round is written, and the group halves the batch until the bad row stands alone.
   */
  async function decideAll(connection: Connection, requests: readonly Request[]): Promise<readonly Applied[]> {
    const answers: (Applied | null)[] = requests.map((request) => {
      const error = unfit(request)
      return error === null ? null : { error }
    })
    const woken: string[] = []
    const open = () => requests.map((_, index) => index).filter((index) => answers[index] === null)
    let committing = false
    try {
      // 1. Whatever leaves its record as it is needs no lock.
      const first = open()
      const same = await answerUnchanged(
        readRecords,
        connection.query,
        first.map((index) => requests[index] as Request),
      )
      for (const [place, index] of first.entries()) answers[index] = same[place] ?? null
      // 2. The rest, under locks. Each round is a transaction of its own.
      for (let round = 0; round < ROUNDS && open().length > 0; round++) {
        const these = open()
        const decided = await inTransaction(connection, async () => {
          committing = false
          const result = await decideRound(
            connection.query,
            these.map((index) => requests[index] as Request),
            true,
          )
          committing = true
          return result
        })
        committing = false
        woken.push(...decided.woken)
        for (const [place, index] of these.entries()) {
          const answer = decided.decided[place]
          if (answer === undefined || answer === 'again') continue
          answers[index] = answer === 'locked' ? { error: heldByAnother() } : answer
        }
      }
    } catch (error) {
      if (!errors.leavesConnectionUsable(error)) connection.destroy(error as Error)
      const fault = calls.fault(error, committing ? 'maybe' : 'no')
      // What was committed in an earlier round, or needed no lock, keeps its answer: a grant is never lost.
      if (!answers.some((answer) => answer !== null && 'decision' in answer)) throw fault
      for (const index of open()) answers[index] = { error: fault }
    }
    await watchers.committed(connection, woken)
    return answers.map((answer) => answer ?? { error: heldByAnother() })
  }

  const group = createRequestGroup(createRuntime(), {
    lanes: laneCount,
    flush: (requests, call) =>
      calls.flush(call, (deadline) => lanes.use(deadline, (connection) => decideAll(connection, requests))),
    stopped: errors.stoppedError,
  })
  return {
    apply: group.apply,
    onFlush: group.onFlush,
    read: (ids, call) => calls.read(call, (connection) => readRecords(connection.query, ids)),
    watch: (wake) => watchers.watch(wake),
    stop: group.stop,
  }
}

function heldByAnother(): OnceError {
  return new OnceError('store_busy', `Another transaction held the record for more than ${limits.batchLockMs} ms.`)
}
