import { until } from '../../src/testing/until.ts'
import type { SeenRun } from '../../test/support/service/outreach/outreach.ts'
import type { Door } from './provider.ts'
import { countOf, judgeDeeds, type System, type World } from './world.ts'

/** By step: which door of the provider it goes through, and what it says there. */
const steps: Readonly<Record<string, { readonly door: Door; readonly text: (who: string) => string }>> = {
  mail: { door: 'hook', text: (who) => `Mail to ${who}` },
  call: { door: 'step', text: (who) => `Call for ${who}` },
  sms: { door: 'sms', text: (who) => `Text to ${who}` },
}

const RESTING = new Set(['succeeded', 'failed', 'cancelled', 'unknown'])

/** Runs of three steps at three kinds of providers: each run ends, or waits at a step that is listed as unknown. */
export function createOutreach(world: World): System {
  const { cluster, clients, provider, random, apiKey } = world
  const runs = new Map<string, string>()
  const states: Record<string, number> = {}
  let sequenceId = ''

  return {
    name: 'outreach',
    lanes: 3,
    async begin() {
      const who = '{{lead.email}}'
      const text = (id: string) => steps[id]?.text(who)
      const body = {
        name: 'Storm',
        steps: [
          { id: 'mail', type: 'email', template: text('mail') },
          { id: 'pause', type: 'wait', ms: 300 },
          { id: 'call', type: 'webhook', url: `${provider.url}/step`, template: text('call') },
          { id: 'sms', type: 'sms', template: text('sms') },
        ],
      }
      const headers = { 'idempotency-key': 'storm-sequence' }
      const request = { method: 'POST', path: '/api/sequences', bearer: apiKey, headers, body }
      sequenceId = String((await clients.insist(request, ({ status }) => status === 201)).body['id'])
    },
    async command(number) {
      const who = `run${number}@example.com`
      const phone = `+49160${String(number).padStart(8, '0')}`
      const lead = { channel: 'local', message: `Lead ${number}`, recipientEmail: who, recipientPhone: phone }
      const made = await clients.insist(
        { method: 'POST', path: '/api/messages', bearer: apiKey, body: lead },
        ({ body }) => typeof body['leadId'] === 'string',
      )
      const runId = `storm-${number}`
      const body = { leadId: made.body['leadId'], runId }
      const request = { method: 'POST', path: `/api/sequences/${sequenceId}/runs`, bearer: apiKey, body }
      // Two at once are the same run.
      const people = random.chance(0.2) ? 2 : 1
      const answers = Array.from({ length: people }, () => clients.insist(request, ({ status }) => status === 201))
      await Promise.all(answers)
      runs.set(runId, who)
    },
    async left() {
      const open = await countOf(
        world,
        `onceonly_runs where state not in ('succeeded', 'failed', 'cancelled', 'unknown')`,
      )
      return open === 0 ? [] : [`${open} runs have not ended`]
    },
    async judge() {
      const wrong: string[] = []
      const [server] = cluster.servers
      if (server === undefined) return ['no server is left to ask']
      for (const [runId, who] of runs) {
        const read = async () => (await server.get(`/api/runs/${runId}`)).body as unknown as SeenRun
        // An unknown step whose provider honours keys is retried from time to time, and its run may just continue.
        const run = await until(`${runId} rests`, read, ({ state }) => RESTING.has(state)).catch(read)
        states[run.state] = (states[run.state] ?? 0) + 1
        wrong.push(...judgeRun(run, who))
      }
      const stored = await countOf(world, 'onceonly_runs')
      if (stored !== runs.size) wrong.push(`${runs.size} runs were started, ${stored} are there`)
      const listed = (await server.get('/api/runs?state=unknown&limit=100')).body as { runs?: readonly unknown[] }
      if ((listed.runs ?? []).length !== Math.min(100, states['unknown'] ?? 0))
        wrong.push(`${states['unknown']} runs are unknown, and ${listed.runs?.length} are listed`)
      return wrong
    },
    figures: () => ({ commands: runs.size, ...states }),
  }

  function judgeRun({ runId, state, steps: seen }: SeenRun, who: string): string[] {
    const open = seen.filter((step) => !['succeeded', 'failed', 'unknown'].includes(step.state))
    // Several workers were killed under it in turn: it waits for an operator, at the step it had reached.
    const parked = state === 'unknown' && !seen.some((step) => step.state === 'unknown')
    if (parked) states['parked'] = (states['parked'] ?? 0) + 1
    return [
      ...(open.length > 0 && !parked ? [`${runId} is ${state}, and its step ${open[0]?.id} is ${open[0]?.state}`] : []),
      ...Object.entries(steps).flatMap(([id, { door, text }]) => {
        const step = seen.find((each) => each.id === id)
        const status = step?.state === 'succeeded' ? 'done' : (step?.state ?? 'never begun')
        return judgeDeeds(`${id} of ${runId}`, provider.deedsOf(door, text(who)), status, door !== 'sms')
      }),
    ]
  }
}
