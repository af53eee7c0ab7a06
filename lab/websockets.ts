import { parseArgs } from 'node:util'
import { runStorm } from '../test/proof/streams/storm.ts'
import { createDatabase } from '../tools/servers/database.ts'
import { startServers } from '../tools/servers/index.ts'

/**
 * `npm run lab -- websockets`: the design question over real WebSockets in full: 100 people, five region processes on
 * PostgreSQL and NATS, two partitions, a killed region, 25 people away for 30 s, one on a link of 500 ms.
 */
const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '100' },
    regions: { type: 'string', default: '5' },
    talk: { type: 'string', default: '60000' },
    pause: { type: 'string', default: '4000' },
    offline: { type: 'string', default: '30000' },
    seed: { type: 'string', default: '1' },
  },
})

const names = ['frankfurt', 'virginia', 'saopaulo', 'tokyo', 'sydney', 'mumbai', 'lagos']
const beganMs = performance.now()
const servers = await startServers(['postgres', 'nats'])
try {
  const urlOf = (variable: string) => servers.env[variable] ?? ''
  await using database = await createDatabase(urlOf('ONCEONLY_TEST_POSTGRES_URL'))
  const result = await runStorm({
    clients: Number(values.clients),
    regions: names.slice(0, Number(values.regions)),
    talkMs: Number(values.talk),
    pauseMs: Number(values.pause),
    offlineMs: Number(values.offline),
    databaseUrl: database.url,
    natsUrl: urlOf('ONCEONLY_TEST_NATS_URL'),
    seed: Number(values.seed),
    progress: (line) => console.log(`${((performance.now() - beganMs) / 1_000).toFixed(1).padStart(7)} s  ${line}`),
  })
  console.log(
    `${result.messages} messages; all clients had everything ${result.convergedMs} ms after the last was accepted`,
  )
} finally {
  await servers.stop()
}
