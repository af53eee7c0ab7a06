import { parseArgs } from 'node:util'
import { withServers } from '../tools/tests/servers.ts'

/**
 * `npm run lab -- outreach-campaign`: a campaign of a thousand leads, first at a webhook and then by mail, while ten of its
 * processes are killed and the provider answers 429, loses answers and does not answer. It ends at the first lead that is
 * reached twice or never, at the first second with more requests than the rate, judged at the provider, and when the stream
 * of its progress does not lead to its end.
 */
const { values } = parseArgs({
  options: {
    leads: { type: 'string', default: '1000' },
    kills: { type: 'string', default: '10' },
    /** Requests within a second. */
    rate: { type: 'string', default: '20' },
    on: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
    by: { type: 'string', multiple: true, default: ['webhook', 'mail'] },
  },
})

const PROCESSES = 3
const HALF_HOUR_MS = 30 * 60_000
/** Of a hundred requests. */
const MOOD = { refuse: 15, lose: 6, hang: 3 }

async function runOn(place: 'sqlite' | 'postgres', way: 'webhook' | 'mail'): Promise<void> {
  // Loaded only now: they look for their PostgreSQL server as soon as they are.
  const [{ openCluster }, { startMail }, { startKeyedProvider }, storm] = await Promise.all([
    import('../test/support/service/cluster.ts'),
    import('../test/support/service/messages/mail.ts'),
    import('../test/support/service/outreach/keyed-provider.ts'),
    import('../test/proof/service/outreach/campaign-storm.ts'),
  ])
  const startedMs = performance.now()
  const say = (line: string) =>
    console.log(`${place}, ${way}, ${((performance.now() - startedMs) / 1_000).toFixed(0)} s: ${line}`)
  const mood = storm.badMood(MOOD)
  await using mail = await startMail(() => 0, mood)
  await using provider = await startKeyedProvider(mood)
  const env = {
    ONCEONLY_SMTP_URL: mail.url,
    ONCEONLY_SMTP_RATE: `${values.rate}/second`,
    ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1',
    ONCEONLY_OUTREACH_WEBHOOK_RATE: `${values.rate}/second`,
    ONCEONLY_SEND_TIMEOUT_MS: '2000',
  }
  await using cluster = await openCluster(place, { processes: PROCESSES, env })
  const figures = await storm.campaignThroughKills(cluster, {
    target: way === 'mail' ? storm.atMail(mail) : storm.atWebhook(provider),
    leads: Number(values.leads),
    kills: Number(values.kills),
    pace: { limit: Number(values.rate), perMs: 1_000 },
    boundMs: HALF_HOUR_MS,
    progress: say,
  })
  say(`each lead was reached once, within the rate. ${JSON.stringify(figures)}`)
}

const places = (['sqlite', 'postgres'] as const).filter((place) => values.on.includes(place))
const ways = (['webhook', 'mail'] as const).filter((way) => values.by.includes(way))
await withServers(places.includes('postgres') ? ['postgres'] : [], async () => {
  for (const place of places) for (const way of ways) await runOn(place, way)
})
