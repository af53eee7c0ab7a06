import type { Pending } from '../parts/sender.ts'
import type { LogPlace } from '../protocol/protocol.ts'
import type { ClientIdentity, ClientPlace, ClientPosition, ClientRecord, PendingSend } from './ports.ts'

/** A client's place in memory: survives reconnects, not restarts. Give the same one to the next client to play a restart. */
export function createMemoryPlace(): ClientPlace {
  let identity: ClientIdentity | null = null
  let next = 1
  let acknowledged: LogPlace | null = null
  let position: ClientPosition = { logs: {}, ordered: 0 }
  const pending = new Map<number, Pending<PendingSend>>()
  const settled = new Set<string>()

  function record(): ClientRecord | null {
    if (identity === null) return null
    return { identity, next, pending: [...pending.values()], acknowledged, position }
  }

  return {
    load: async () => record(),
    async identify(given) {
      identity = given
    },
    async renew(given, carried) {
      identity = given
      acknowledged = null
      pending.clear()
      for (const each of carried) pending.set(each.number, each)
      next = carried.length + 1
    },
    async save(each) {
      pending.set(each.number, each)
      next = Math.max(next, each.number + 1)
    },
    async remove(below, ranges) {
      for (const number of pending.keys()) {
        if (number < below || ranges.some(([from, to]) => from <= number && number <= to)) pending.delete(number)
      }
    },
    async acknowledged(place) {
      acknowledged = place
    },
    async advance(given) {
      position = given
    },
    async settle(key, given, effect) {
      const first = !settled.has(key)
      if (first) await effect()
      settled.add(key)
      position = given
      return first
    },
  }
}
