import { parseArgs } from 'node:util'
import { withServers } from '../tools/tests/servers.ts'

/**
 * `npm run lab -- messages`: the full counts of what `npm test` runs a small share of, at a real SMTP server and with
 * two processes on one store. It ends at the first message that was delivered twice, forgotten, or called wrongly.
 */
const { values } = parseArgs({
  options: {
    /** Pairs of identical requests, 0 to 350 ms apart. */
    pairs: { type: 'string', default: '50' },
    /** Sends with clients that retry, while processes are killed at random. */
    sends: { type: 'string', default: '1000' },
    'sends-per-kill': { type: 'string', default: '10' },
    on: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
  },
})

const ANSWER_MS_MOST = 120
const PROCESSES = 2

async function runOn(place: 'sqlite' | 'postgres'): Promise<void> {
  // Loaded only now: they look for their PostgreSQL server as soon as they are.
  const [{ openCluster }, { startMail }, { sendPairs }, { sendThroughKills }] = await Promise.all([
    import('../test/support/service/cluster.ts'),
    import('../test/support/service/messages/mail.ts'),
    import('../test/contract/service/messages/pairs.ts'),
    import('../test/proof/service/messages/kills.ts'),
  ])
  const startedMs = performance.now()
  const say = (line: string) =>
    console.log(`${place}, ${((performance.now() - startedMs) / 1_000).toFixed(0)} s: ${line}`)
  await using mail = await startMail(() => Math.random() * ANSWER_MS_MOST)
  const env = { ONCEONLY_SMTP_URL: mail.url, ONCEONLY_SEND_TIMEOUT_MS: '5000' }
  await using cluster = await openCluster(place, { processes: PROCESSES, env })
  const pairs = await sendPairs(cluster, mail, Number(values.pairs))
  say(`${pairs.count} pairs: ${mail.mails.length} mails. Good. ${JSON.stringify(pairs)}`)
  const kills = await sendThroughKills(cluster, mail, {
    sends: Number(values.sends),
    sendsPerKill: Number(values['sends-per-kill']),
    progress: say,
  })
  say(`${kills.sends} sends through ${kills.kills} kills: none twice, none forgotten. Good. ${JSON.stringify(kills)}`)
}

const places = (['sqlite', 'postgres'] as const).filter((place) => values.on.includes(place))
await withServers(places.includes('postgres') ? ['postgres'] : [], async () => {
  for (const place of places) await runOn(place)
})
