import type { Request } from '../../core/request.ts'
import type { Applied, Claims } from '../../store/port.ts'
import { applyBatch } from './batch.ts'
import type { Core } from './core.ts'
import type { Lanes } from './lanes.ts'
import { plannedOn } from './statement.ts'
import type { Steps } from './steps.ts'
import type { Watchers } from './watch.ts'

export interface ClaimParts {
  readonly core: Core
  readonly steps: Steps
  readonly lanes: Lanes
  readonly laneCount: number
  readonly watchers: Watchers
}

export function createClaims({ core, steps, lanes, laneCount, watchers }: ClaimParts): Claims {
  const { fault } = core
  const wake = watchers.changed
  return {
    lanes: laneCount,
    apply: async <R extends Request>(requests: readonly R[], call: { readonly timeoutMs: number }) => {
      if (requests.length === 0) return []
      const answers = await core.call(call, (deadline) =>
        lanes.use(deadline, (connection) => applyBatch({ steps, connection, deadline, fault, wake }, requests)),
      )
      // Each request was decided by the step of its own kind.
      return answers as Applied<R>[]
    },
    read: (ids, call) => core.read(call, ({ connection }) => steps.read(plannedOn(connection), ids)),
    watch: (wakeOne) => watchers.watch(wakeOne),
  }
}
