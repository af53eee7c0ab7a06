import assert, { AssertionError } from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../../src/testing/until.ts'
import type { Cluster, TestServer } from '../../../support/service/cluster.ts'
import type { MailServer } from '../../../support/service/messages/mail.ts'
import {
  begin,
  campaignNow,
  eventsOf,
  type SeenCampaign,
  statesOf,
} from '../../../support/service/outreach/campaigns.ts'
import type { KeyedProvider, Mood } from '../../../support/service/outreach/keyed-provider.ts'
import { makeLead, resolve, runNow, type SeenRun, store } from '../../../support/service/outreach/outreach.ts'

/** Calls of one span, as the servers have it (`ONCEONLY_OUTREACH_WEBHOOK_RATE`). */
interface Pace {
  readonly limit: number
  readonly perMs: number
}

interface Lead {
  readonly id: string
  readonly email: string
}

/** Where the campaign goes, and what is known there. */
export interface Target {
  /** The step of the sequence. */
  readonly step: { readonly id: string; readonly type: string; readonly template: string; readonly url?: string }
  readonly arrivals: readonly { readonly atMs: number }[]
  /** How often it was done for a lead. */
  countOf(lead: Lead): number
  /** What an operator says of a step whose outcome is unknown. */
  resolutionFor(lead: Lead): object
}

/** A provider that honours keys: what is tried again is done once. */
export function atWebhook({ url, arrivals, effects }: KeyedProvider): Target {
  return {
    step: { id: 'hook', type: 'webhook', url: `${url}/in`, template: 'For {{lead.email}}' },
    arrivals,
    countOf: ({ id }) => [...effects.values()].filter(({ leadId }) => leadId === id).length,
    resolutionFor: () => ({ kind: 'not_done' }),
  }
}

/** A mail server, which knows no keys: the operator looks into the mailbox. */
export function atMail({ arrivals, mails }: MailServer): Target {
  const countOf = ({ email }: Lead) => mails.filter(({ to }) => to === email).length
  return {
    step: { id: 'mail', type: 'email', template: 'For {{lead.email}}' },
    arrivals,
    countOf,
    resolutionFor: (lead) => (countOf(lead) > 0 ? { kind: 'succeeded', result: {} } : { kind: 'not_done' }),
  }
}

interface Storm {
  readonly target: Target
  readonly leads: number
  readonly kills: number
  readonly pace: Pace
  /** How long the campaign may take. */
  readonly boundMs: number
  readonly progress?: (line: string) => void
}

/** What was seen, after everything that must hold was found to hold. */
export interface StormFigures {
  readonly leads: number
  readonly kills: number
  /** Requests at the provider, refused ones included. */
  readonly arrivals: number
  /** The most within one span. */
  readonly busiest: number
  /** Steps that an operator resolved. */
  readonly unknowns: number
  /** Snapshots of the progress that a page has shown, and how often it had to connect. */
  readonly snapshots: number
  readonly connections: number
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
 * judge: no span has more arrivals than the rate, no lead is reached twice, and what a page shows of it is what was done.
 */
export async function campaignThroughKills(cluster: Cluster, storm: Storm): Promise<StormFigures> {
  const { target, kills, boundMs, pace, progress = () => {} } = storm
  const [server] = cluster.servers as [TestServer]
  const name = `storm-${target.step.type}`
  const leads = await leadsOf(server, name, storm.leads)
  const sequenceId = await store(server, name, [target.step])
  const id = await begin(server, { sequenceId, leadIds: leads.map((lead) => lead.id), campaignId: name })
  const page = watchProgress(cluster, id)
  const ending = untilEnded(cluster, id, storm, leads, boundMs)
  // Heard at its end, where it is awaited.
  ending.catch(() => {})
  for (let kill = 1; kill <= kills; kill++) {
    const before = target.arrivals.length
    const left = leads.filter((lead) => target.countOf(lead) === 0).length
    const share = Math.floor(left / (kills + 2 - kill) / 2)
    // The last of them may wait for minutes until they are tried again: then kills come one after the other.
    if (left > storm.leads / 5) {
      await until(`${share} arrivals before kill ${kill}`, async () => target.arrivals.length - before >= share)
    }
    await cluster.servers[kill % cluster.servers.length]?.kill()
    await cluster.add()
    progress(`${kill} of ${kills} kills, ${target.arrivals.length} arrivals`)
  }
  const { ended, unknowns } = await ending
  assert.deepEqual([ended.state, ended.leads], ['succeeded', storm.leads])
  assert.deepEqual(statesOf(ended), { succeeded: storm.leads })
  const wrong = leads.filter((lead) => target.countOf(lead) !== 1)
  assert.deepEqual(wrong, [], 'each lead is reached once')
  const most = busiest(target.arrivals, pace.perMs)
  assert.ok(most <= pace.limit, `${most} arrivals within ${pace.perMs} ms, and the rate is ${pace.limit}`)
  const { shown, connections } = await page
  assert.equal(shown.at(-1), storm.leads, 'the page has seen the end')
  assert.deepEqual(
    shown,
    shown.toSorted((a, b) => a - b),
    'progress goes one way',
  )
  const seen = { snapshots: shown.length, connections }
  return { leads: storm.leads, kills, arrivals: target.arrivals.length, busiest: most, unknowns, ...seen }
}

/** A few at a time: one process accepts them all. */
async function leadsOf(server: TestServer, name: string, count: number): Promise<readonly Lead[]> {
  const leads: Lead[] = []
  for (let at = 0; at < count; at += 20) {
    const emails = Array.from({ length: Math.min(20, count - at) }, (_, n) => `${name}${at + n}@example.com`)
    const some = emails.map(async (email) => ({ id: await makeLead(server, { recipientEmail: email }), email }))
    leads.push(...(await Promise.all(some)))
  }
  return leads
}

/** Follows the stream as a page does: at another process when its own has died, behind the last event that it saw. */
async function watchProgress(cluster: Cluster, id: string): Promise<{ shown: number[]; connections: number }> {
  const shown: number[] = []
  let last: number | undefined
  for (let connections = 1; ; connections++) {
    const server = cluster.servers[connections % cluster.servers.length] as TestServer
    try {
      for await (const event of eventsOf(server, `/api/campaigns/${id}/events`, last)) {
        last = event.id
        if (event.name === 'progress') {
          const { progress } = event.data as Pick<SeenCampaign, 'progress'>
          shown.push(progress['succeeded'] ?? 0)
        }
        if (event.name !== ':ended') continue
        assert.equal(event.data['state'], 'succeeded')
        return { shown, connections }
      }
    } catch (error) {
      if (error instanceof AssertionError) throw error
    }
    await sleep(LOOK_MS)
  }
}

const LOOK_MS = 200

/** What is unknown is looked up at the provider, as an operator would. */
async function untilEnded(
  cluster: Cluster,
  id: string,
  { target }: Storm,
  leads: readonly Lead[],
  boundMs: number,
): Promise<{ ended: SeenCampaign; unknowns: number }> {
  const giveUpMs = performance.now() + boundMs
  const byId = new Map(leads.map((lead) => [lead.id, lead]))
  for (let unknowns = 0; ; ) {
    try {
      const ended = await campaignNow(cluster.servers[0] as TestServer, id)
      if (ended.state === 'succeeded' || ended.state === 'failed') return { ended, unknowns }
      assert.ok(performance.now() < giveUpMs, `the campaign has not ended: ${JSON.stringify(statesOf(ended))}`)
      unknowns += await resolveUnknowns(cluster.servers[0] as TestServer, byId, target)
    } catch (error) {
      // The process that was asked may have been killed.
      if (error instanceof AssertionError) throw error
    }
    await sleep(LOOK_MS)
  }
}

async function resolveUnknowns(server: TestServer, leads: ReadonlyMap<string, Lead>, target: Target): Promise<number> {
  let resolved = 0
  const answer = await server.get('/api/runs?state=unknown')
  for (const { runId } of answer.body['runs'] as readonly Pick<SeenRun, 'runId'>[]) {
    const run = await runNow(server, runId)
    const lead = leads.get(run.leadId)
    const step = run.steps.find(({ state }) => state === 'unknown')
    if (step === undefined || lead === undefined) continue
    const { status } = await resolve(server, run, step.id, target.resolutionFor(lead))
    if (status === 200) resolved += 1
  }
  return resolved
}

/** The most arrivals of any span, wherever it begins. */
function busiest(arrivals: Target['arrivals'], perMs: number): number {
  const times = arrivals.map(({ atMs }) => atMs).toSorted((a, b) => a - b)
  let first = 0
  let most = 0
  for (const [last, time] of times.entries()) {
    while (time - (times[first] ?? 0) >= perMs) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}
