import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../../src/testing/until.ts'
import type { Cluster, TestServer } from '../../../support/service/cluster.ts'
import { begin, campaignNow, type SeenCampaign, statesOf } from '../../../support/service/outreach/campaigns.ts'
import type { Arrival, KeyedProvider, Mood } from '../../../support/service/outreach/keyed-provider.ts'
import { makeLead, resolve, runNow, store } from '../../../support/service/outreach/outreach.ts'

/** Calls of one span, as the servers have it (`ONCEONLY_OUTREACH_WEBHOOK_RATE`). */
interface Pace {
  readonly limit: number
  readonly perMs: number
}

interface Storm {
  readonly provider: KeyedProvider
  readonly leads: number
  readonly kills: number
  readonly pace: Pace
  /** How long the campaign may take. */
  readonly boundMs: number
  readonly progress?: (line: string) => void
}

/** Of a hundred requests these are refused, carried out without an answer, or never answered. */
export function badMood(shares: { readonly refuse: number; readonly lose: number; readonly hang: number }): () => Mood {
  return () => {
    const luck = Math.random() * 100
    if (luck < shares.refuse) return 'refuse'
    if (luck < shares.refuse + shares.lose) return 'lose'
    return luck < shares.refuse + shares.lose + shares.hang ? 'hang' : 'answer'
  }
}

/**
 * A campaign while its processes are killed, at a provider that refuses, loses answers and says nothing. The provider is the
 * judge: no span has more arrivals than the rate, no lead has two effects, and what the campaign counts is what was done.
 */
export async function campaignThroughKills(cluster: Cluster, storm: Storm): Promise<SeenCampaign> {
  const { provider, leads, kills, boundMs, progress = () => {} } = storm
  const [server] = cluster.servers as [TestServer]
  const leadIds = await leadsOf(server, leads)
  const steps = [{ id: 'hook', type: 'webhook', url: `${provider.url}/in`, template: 'For {{lead.email}}' }]
  const sequenceId = await store(server, 'Storm', steps)
  const id = await begin(server, { sequenceId, leadIds, campaignId: 'storm' })
  for (let kill = 1; kill <= kills; kill++) {
    const before = provider.arrivals.length
    const share = Math.max(1, Math.floor(leads / (kills + 1) / 2))
    await until(
      `${share} more arrivals before kill ${kill}`,
      () => provider.arrivals.length - before,
      (count) => count >= share || provider.effects.size === leads,
    )
    await cluster.servers[kill % cluster.servers.length]?.kill()
    await cluster.add()
    progress(`${kill} of ${kills} kills, ${provider.arrivals.length} arrivals, ${provider.effects.size} effects`)
  }
  const ended = await untilEnded(cluster, id, leadIds, boundMs)
  judge(provider, leadIds, storm.pace)
  assert.deepEqual([ended.state, ended.leads, statesOf(ended)], ['succeeded', leads, { succeeded: leads }])
  return ended
}

/** A few at a time: one process accepts them all. */
async function leadsOf(server: TestServer, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at += 20) {
    const some = Array.from({ length: Math.min(20, count - at) }, (_, n) => `storm${at + n}@example.com`)
    ids.push(...(await Promise.all(some.map((recipientEmail) => makeLead(server, { recipientEmail })))))
  }
  return ids
}

/** What is unknown is looked up at the provider, as an operator would. */
async function untilEnded(cluster: Cluster, id: string, leadIds: readonly string[], boundMs: number) {
  const giveUpMs = performance.now() + boundMs
  for (;;) {
    const [server] = cluster.servers as [TestServer]
    const now = await campaignNow(server, id)
    if (now.state === 'succeeded' || now.state === 'failed') return now
    assert.ok(performance.now() < giveUpMs, `the campaign has not ended: ${JSON.stringify(statesOf(now))}`)
    if ((now.progress['unknown'] ?? 0) > 0) await resolveUnknowns(server, id, leadIds)
    await sleep(200)
  }
}

async function resolveUnknowns(server: TestServer, id: string, leadIds: readonly string[]): Promise<void> {
  for (const leadId of leadIds) {
    const run = await runNow(server, `${id}.${leadId}`)
    const step = run.steps.find(({ state }) => state === 'unknown')
    if (step !== undefined) await resolve(server, run, step.id, { kind: 'not_done' })
  }
}

function judge({ arrivals, effects }: KeyedProvider, leadIds: readonly string[], pace: Pace): void {
  assert.deepEqual(
    [...effects.values()].map(({ leadId }) => leadId).toSorted(),
    leadIds.toSorted(),
    'one effect for each',
  )
  const most = busiest(arrivals, pace.perMs)
  assert.ok(most <= pace.limit, `${most} arrivals within ${pace.perMs} ms, and the rate is ${pace.limit}`)
}

/** The most arrivals of any span, wherever it begins. */
function busiest(arrivals: readonly Arrival[], perMs: number): number {
  const times = arrivals.map(({ atMs }) => atMs).toSorted((a, b) => a - b)
  let first = 0
  let most = 0
  for (const [last, time] of times.entries()) {
    while (time - (times[first] ?? 0) >= perMs) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}
