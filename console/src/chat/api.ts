import { ask, Refused } from '../parts/ask.ts'
import type { Scope } from './tab.ts'

export interface Region {
  readonly region: string
  /** `cut`: off from the others; its participants keep talking to each other. */
  readonly state: 'joined' | 'cut'
  readonly clients: number
}

export interface ChatApi {
  readonly key: string
  /** The caller that the key names. */
  readonly scope: Scope
  /** Whether the server lets this page cut regions. */
  readonly hasSwitches: boolean
  regions(): Promise<readonly Region[]>
  link(region: string, state: Region['state']): Promise<void>
}

/** On this machine the server gives the key of the demo workspace away; null where it does not. */
export async function demoKey(): Promise<{ readonly key: string; readonly hasSwitches: boolean } | null> {
  try {
    const { apiKey, switches } = await ask<{ readonly apiKey: string; readonly switches: boolean }>('/chat/demo')
    return { key: apiKey, hasSwitches: switches }
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null
    throw error
  }
}

interface RegionsAnswer extends Scope {
  readonly regions: readonly Region[]
}

/** Asks whose key it is, and for the regions; throws what the server refuses. */
export async function openChatApi(
  key: string,
  hasSwitches: boolean,
): Promise<{ readonly api: ChatApi; readonly regions: readonly string[] }> {
  const headers = { authorization: `Bearer ${key}` }
  const look = () => ask<RegionsAnswer>('/api/chat/regions', { headers })
  const { workspace, caller, regions } = await look()
  const api: ChatApi = {
    key,
    scope: { workspace, caller },
    hasSwitches,
    regions: async () => (await look()).regions,
    link: (region, state) =>
      ask(`/api/chat/regions/${encodeURIComponent(region)}/link`, { method: 'PUT', headers, body: { state } }),
  }
  return { api, regions: regions.map(({ region }) => region) }
}
