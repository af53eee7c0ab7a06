import { ask, Refused } from '../parts/ask.ts'

export interface Region {
  readonly region: string
  /** `cut`: off from the others; whoever is in it goes on talking there. */
  readonly state: 'joined' | 'cut'
  readonly clients: number
}

export interface ChatApi {
  readonly key: string
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

export function createChatApi(key: string, hasSwitches: boolean): ChatApi {
  const headers = { authorization: `Bearer ${key}` }
  return {
    key,
    hasSwitches,
    regions: async () => (await ask<{ readonly regions: readonly Region[] }>('/api/chat/regions', { headers })).regions,
    link: (region, state) =>
      ask(`/api/chat/regions/${encodeURIComponent(region)}/link`, { method: 'PUT', headers, body: { state } }),
  }
}
