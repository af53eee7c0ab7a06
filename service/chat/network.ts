import type { ExchangeWay } from 'onceonly/stream/server'
import { prefixOf, type RegionName } from './words.ts'

/** How a region is joined to the others. */
export interface RegionLink {
  readonly state: 'joined' | 'cut'
  /** Each way. */
  readonly delayMs: number
}

/** How a person is joined to the server. Offline until a time of this process's own clock; null: online. */
export interface ClientWeather {
  readonly delayMs: number
  readonly offlineUntilMs: number | null
}

/** The weather of the demo. Each workspace has its own, so that no workspace cuts the rooms of another. */
export interface Network {
  regionOf(workspaceId: string, region: RegionName): RegionLink
  setRegion(workspaceId: string, region: RegionName, link: RegionLink): void
  clientOf(workspaceId: string, client: string): ClientWeather
  setClient(workspaceId: string, client: string, weather: ClientWeather): void
  /** Calls when a client's weather has changed. */
  watch(workspaceId: string, client: string, changed: () => void): () => void
  /** What is between two regions for a room, by its full name. */
  way(from: string, to: string, room: string): ExchangeWay
}

const CALM: RegionLink = { state: 'joined', delayMs: 0 }
const CLEAR: ClientWeather = { delayMs: 0, offlineUntilMs: null }
/** Switches that are remembered; the oldest are forgotten, and what they broke is whole again. */
const SWITCHES_MOST = 10_000

export function createNetwork(): Network {
  const regions = new Map<string, RegionLink>()
  const clients = new Map<string, ClientWeather>()
  const watchers = new Map<string, Set<() => void>>()
  const keyOf = (workspaceId: string, name: string) => prefixOf(workspaceId) + name

  return {
    regionOf: (workspaceId, region) => regions.get(keyOf(workspaceId, region)) ?? CALM,
    setRegion(workspaceId, region, link) {
      remember(regions, keyOf(workspaceId, region), link)
    },
    clientOf: (workspaceId, client) => clients.get(keyOf(workspaceId, client)) ?? CLEAR,
    setClient(workspaceId, client, weather) {
      const key = keyOf(workspaceId, client)
      remember(clients, key, weather)
      for (const changed of watchers.get(key) ?? []) changed()
    },
    watch(workspaceId, client, changed) {
      const key = keyOf(workspaceId, client)
      const all = watchers.get(key) ?? new Set()
      watchers.set(key, all.add(changed))
      return () => {
        all.delete(changed)
        if (all.size === 0) watchers.delete(key)
      }
    },
    way(from, to, room) {
      const prefix = room.slice(0, room.indexOf('.') + 1)
      const ends = [from, to].map((region) => regions.get(prefix + region) ?? CALM)
      return {
        cut: ends.some(({ state }) => state === 'cut'),
        delayMs: Math.max(...ends.map(({ delayMs }) => delayMs)),
      }
    },
  }
}

function remember<T>(all: Map<string, T>, key: string, value: T): void {
  all.delete(key)
  all.set(key, value)
  const [oldest] = all.keys()
  if (all.size > SWITCHES_MOST && oldest !== undefined) all.delete(oldest)
}
