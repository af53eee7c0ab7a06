import { createRuntime } from '../../../runtime/runtime.ts'
import type { Request } from '../../core/request.ts'
import type { Applied, Call } from '../../store/port.ts'
import type { GroupedClaims } from '../../store/request-group.ts'
import { createRequestGroup } from '../../store/request-group.ts'
import { applyBatch } from './batch.ts'
import type { Core } from './core.ts'
import { errors } from './errors.ts'
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

export interface OwnClaims extends GroupedClaims {
  /** Decides requests in one batch, as the group commit does. */
  flush(requests: readonly Request[], call: Call): Promise<readonly Applied[]>
  /** Refuses further requests, and waits for those under way. */
  stop(): Promise<void>
}

export function createClaims({ core, steps, lanes, laneCount, watchers }: ClaimParts): OwnClaims {
  const { fault } = core
  const wake = watchers.changed
  const flush: OwnClaims['flush'] = (requests, call) =>
    core.flush(call, (deadline) =>
      lanes.use(deadline, async (lane) => {
        const applied = await applyBatch({ steps, lane, deadline, fault, wake }, requests)
        for (const each of applied) if ('record' in each) core.remembered.note(each.record)
        return applied
      }),
    )
  const group = createRequestGroup(createRuntime(), { lanes: laneCount, flush, stopped: errors.stoppedError })
  return {
    apply: group.apply,
    onFlush: group.onFlush,
    read: (ids, call) => core.read(call, ({ connection }) => steps.read(plannedOn(connection), ids)),
    watch: (wakeOne) => watchers.watch(wakeOne),
    flush,
    stop: group.stop,
  }
}
