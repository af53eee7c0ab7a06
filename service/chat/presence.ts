import { prefixOf, type RegionName } from './words.ts'

/** How many connections each workspace has in each region of this process: how busy others are is their own business. */
export interface Presence {
  /** @returns to be called when the connection has ended */
  enter(workspaceId: string, region: RegionName): () => void
  count(workspaceId: string, region: RegionName): number
}

export function createPresence(): Presence {
  const counts = new Map<string, number>()
  const keyOf = (workspaceId: string, region: RegionName) => prefixOf(workspaceId) + region
  const add = (key: string, by: number) => {
    const count = (counts.get(key) ?? 0) + by
    if (count > 0) counts.set(key, count)
    else counts.delete(key)
  }
  return {
    enter(workspaceId, region) {
      const key = keyOf(workspaceId, region)
      let isIn = true
      add(key, 1)
      return () => {
        if (isIn) add(key, -1)
        isIn = false
      }
    },
    count: (workspaceId, region) => counts.get(keyOf(workspaceId, region)) ?? 0,
  }
}
