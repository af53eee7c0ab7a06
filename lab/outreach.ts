import { parseArgs } from 'node:util'
import { withServers } from '../tools/tests/servers.ts'

/**
 * `npm run lab -- outreach`: the full counts of what `npm test` runs a small share of. Sequences of mails, at a real SMTP
 * server, while the processes that run them are killed at random. It ends at the first mail that was delivered twice, or
 * called sent and was not, and at the first run that does not come to its end.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    kills: { type: 'string', default: '40' },
    on: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
  },
})

const ANSWER_MS_MOST = 120
const PROCESSES = 2
const HALF_HOUR_MS = 30 * 60_000

async function runOn(place: 'sqlite' | 'postgres'): Promise<void> {
  // Loaded only now: they look for their PostgreSQL server as soon as they are.
  const [{ openCluster }, { startMail }, { runThroughKills }] = await Promise.all([
    import('../test/support/service/cluster.ts'),
    import('../test/support/service/messages/mail.ts'),
    import('../test/proof/service/outreach/runs-through-kills.ts'),
  ])
  const startedMs = performance.now()
  const say = (line: string) =>
    console.log(`${place}, ${((performance.now() - startedMs) / 1_000).toFixed(0)} s: ${line}`)
  await using mail = await startMail(() => Math.random() * ANSWER_MS_MOST)
  const env = { ONCEONLY_SMTP_URL: mail.url, ONCEONLY_SEND_TIMEOUT_MS: '5000' }
  await using cluster = await openCluster(place, { processes: PROCESSES, env })
  const [runs, kills] = [Number(values.runs), Number(values.kills)]
  const seen = await runThroughKills(cluster, mail, {
    runs,
    kills,
    boundMs: HALF_HOUR_MS,
    spread: true,
    progress: (killed) => say(`${killed} of ${kills} kills, ${mail.mails.length} mails`),
  })
  say(`${runs} runs, ${kills} kills: every run ended, no mail arrived twice. ${JSON.stringify(seen)}`)
}

const places = (['sqlite', 'postgres'] as const).filter((place) => values.on.includes(place))
await withServers(places.includes('postgres') ? ['postgres'] : [], async () => {
  for (const place of places) await runOn(place)
})
