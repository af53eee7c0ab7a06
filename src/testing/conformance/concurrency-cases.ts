import type { Grant, Request } from '../../ledger/core/request.ts'
import type { Store } from '../../ledger/store/port.ts'
import { checkHistory } from '../history/check-history.ts'
import type { HistoryEvent } from '../history/event.ts'
import { createRecordingStore } from '../history/recording-store.ts'
import type { Random } from '../random.ts'
import { createRandom } from '../random.ts'
import type { Case } from './case.ts'
import { check } from './check.ts'
import {
  advance,
  CALL,
  claim,
  LAPSE_MS,
  later,
  policies,
  RETAIN_MS,
  release,
  settle,
  success,
  unknown,
} from './requests.ts'

const IDENTITIES = 4
const WORKERS = 8
const CALLS_PER_WORKER = 30

/** What a worker of an ordinary application would ask next, good and bad, for one of few identities. */
function nextRequest(random: Random, grants: readonly Grant[]): Request {
  const key = `k${random.below(IDENTITIES)}`
  const mine = grants.filter(({ identity }) => identity.key === key)
  const fresh = claim(key, { policy: random.pick([policies.rerun, policies.hold]) })
  if (mine.length === 0 || random.chance(0.4)) return fresh
  const grant = mine.at(random.chance(0.8) ? -1 : random.below(mine.length)) as Grant
  const { id, claimId, fence } = grant
  switch (random.below(6)) {
    case 0:
      return { kind: 'renew', id, claimId, fence, leaseMs: 5_000 }
    case 1:
      return release(grant)
    case 2:
      return settle(grant, later(0))
    case 3:
      return settle(grant, unknown)
    case 4:
      return random.chance(0.3)
        ? { kind: 'resolve', id, by: 'kit', ifFence: null, probeFence: null, to: { kind: 'rerun' } }
        : settle(grant)
    default:
      return settle(grant, success(`"${claimId}"`))
  }
}

async function work(store: Store, random: Random, grants: Grant[]): Promise<void> {
  for (let calls = 0; calls < CALLS_PER_WORKER; calls++) {
    const request = nextRequest(random, grants)
    try {
      const applied = await store.claims.apply(request, CALL)
      if (applied !== undefined && 'decision' in applied && 'lease' in applied.decision)
        grants.push(applied.decision.lease)
    } catch {
      // A store may be too busy for one call; the history knows that it failed.
    }
  }
}

/** The answers to concurrent callers must fit one order of their calls. */
export const concurrencyCases: readonly Case[] = [
  {
    name: 'the answers to concurrent callers fit one order of their calls, across lapses and expiry',
    async run({ store, another }) {
      const stores = another === undefined ? [store] : [store, await another()]
      const events: HistoryEvent[] = []
      const recorded = stores.map((each, index) => {
        return createRecordingStore(each, { process: `store ${index}`, write: (event) => void events.push(event) })
      })
      const grants: Grant[] = []
      for (const [round, waitMs] of [0, LAPSE_MS, RETAIN_MS].entries()) {
        await advance(store, waitMs)
        const workers = Array.from({ length: WORKERS }, (_, index) => {
          return work(recorded[index % recorded.length] as Store, createRandom(1_000 * round + index), grants)
        })
        await Promise.all(workers)
      }
      const answered = events.filter(({ result }) => result.kind === 'ok').length
      check(answered > events.length / 2, `only ${answered} of ${events.length} calls were answered`)
      const verdict = checkHistory(events)
      check(verdict.fits, verdict.fits ? '' : `no order fits: ${JSON.stringify(verdict.problems[0]?.stuck)}`)
    },
  },
]
