import { defineQueue, type Queue } from 'onceonly/run'

/** How many leads of one campaign may be under way at once; each is a queue of its own, whose key is the campaign. */
export const concurrencies = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000] as const
export type Concurrency = (typeof concurrencies)[number]

const unlimited = defineQueue('outreach.leads')
const limited = new Map<number, Queue>(
  concurrencies.map((perKey) => [perKey, defineQueue(`outreach.leads.${perKey}`, { perKey })]),
)

/**
 * Batches begin in turns of their workspaces, and so many within a second: a campaign of thousands enters its leads
 * over a while, and holds up neither the store nor the campaigns of others. It limits no places, because a batch lasts as
 * long as the last of its leads.
 */
export const batchQueue = defineQueue('outreach.batches', { rate: { limit: 20, perMs: 1_000 } })

export const campaignQueues: readonly Queue[] = [batchQueue, unlimited, ...limited.values()]

/** Where the leads of a campaign wait. None of its own runs has a place there. */
export function leadQueue(concurrency: Concurrency | null): Queue {
  return limited.get(concurrency ?? 0) ?? unlimited
}
