import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createRandom } from '../src/testing/random.ts'
import type { TestServer } from '../test/support/service/cluster.ts'
import { startChaos } from './storm/chaos.ts'
import { createClients } from './storm/client.ts'
import { openNetwork } from './storm/network.ts'
import { startStormProvider } from './storm/provider.ts'
import { openStorms, type Storm, stormNames } from './storm/stores.ts'
import type { System, World } from './storm/world.ts'

/**
 * `npm run lab -- storm`: all five systems at once on two servers and one store, while servers are killed and paused,
 * stores stand still, a network loses answers and a provider does whatever providers do. Then everything is left alone
 * until it is at rest, and the ledger of truth is compared: no command twice; each is done, failed or listed as unknown;
 * nothing else is left.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
    on: { type: 'string', multiple: true, default: [...stormNames] },
    out: { type: 'string' },
    'report-seconds': { type: 'string', default: '30' },
  },
})

const PROCESSES = 2
const SEND_TIMEOUT_MS = 2_000
const VIOLATIONS_SHOWN = 20

await using storms = await openStorms(values.on, values.out)
storms.note('all', `seed ${values.seed}, ${values.minutes} minutes each`, {})
// Loaded only now: they look for their PostgreSQL server as soon as they are.
const [{ openCluster }, { hookSecret }, { untilAtRest, judgeRest }, ...creates] = await Promise.all([
  import('../test/support/service/cluster.ts'),
  import('../test/support/service/imports/imports.ts'),
  import('./storm/rest.ts'),
  import('./storm/messages.ts').then(({ createMessages }) => createMessages),
  import('./storm/escalations.ts').then(({ createEscalations }) => createEscalations),
  import('./storm/imports.ts').then(({ createImports }) => createImports),
  import('./storm/outreach.ts').then(({ createOutreach }) => createOutreach),
  import('./storm/chat.ts').then(({ createChat }) => createChat),
])
await storms.each(runOn)

async function runOn(storm: Storm, say: (line: string, figures: object) => void): Promise<void> {
  const random = createRandom(Number(values.seed))
  await using provider = await startStormProvider(random)
  await using network = await openNetwork(PROCESSES, random)
  const data = await mkdtemp(join(tmpdir(), 'onceonly-storm-'))
  await using cluster = await openCluster(storm.place, {
    processes: PROCESSES,
    env: {
      ...storm.env,
      // The embedded store is in the folder that the cluster made for it.
      ...(storm.place === 'sqlite' ? {} : { ONCEONLY_DATA: data }),
      ONCEONLY_HOOK_SECRET: hookSecret,
      ONCEONLY_MESSAGE_WEBHOOK_URL: `${provider.url}/hook`,
      ONCEONLY_MESSAGE_WEBHOOK_HONOURS_KEYS: 'yes',
      ONCEONLY_TWILIO_URL: `${provider.url}/sms`,
      ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1',
      ONCEONLY_SEND_TIMEOUT_MS: String(SEND_TIMEOUT_MS),
    },
  })
  const folder = storm.place === 'sqlite' ? dirname(cluster.address) : data
  const clients = createClients(network.requests, random)
  const [first] = cluster.servers
  const world: World = {
    cluster,
    clients,
    network,
    provider,
    random,
    apiKey: first?.apiKey ?? '',
    operatorToken: 'operator-token-of-tests',
  }
  const systems = creates.map((create) => create(world))
  const answered = () => clients.counts.requests - clients.counts.unanswered
  const chaos = startChaos({ storm, cluster, network, random, answered })
  storms.beforeExit(() => chaos.servers.forEach(({ pid }) => end(pid)))
  const figures = () => ({
    ...Object.fromEntries(systems.map((system) => [system.name, system.figures()])),
    chaos: chaos.counts,
    network: network.losses,
    provider: provider.fates,
    clients: clients.counts,
  })
  const violations: string[] = []
  try {
    for (const system of systems) await system.begin?.()
    const report = () => say(JSON.stringify(figures()), figures())
    const calm = async () => {
      network.calm()
      provider.calm()
      await chaos.stop()
      say('The storm is over.', figures())
    }
    violations.push(...(await drive(systems, report, calm)))
    const left = await untilAtRest(world, systems, (line) => say(line, {}))
    violations.push(...left.map((what) => `left: ${what}`))
    for (const system of systems) violations.push(...(await system.judge()))
    violations.push(...(await judgeRest(world, folder)))
  } finally {
    for (const system of systems) await system.stop?.()
  }
  say(`${violations.length} violations. ${JSON.stringify(figures())}`, { ...figures(), violations })
  const pids = chaos.servers.map(({ pid }) => pid)
  await Promise.all(cluster.servers.map((server) => server.stop()))
  for (const pid of pids) if (isThere(pid)) violations.push(`the server ${pid} is still there after it was stopped`)
  await rm(data, { recursive: true, force: true })
  if (violations.length === 0) return
  const logs = await keepLogs(chaos.servers, storm.name)
  const shown = violations.slice(0, VIOLATIONS_SHOWN).join('\n  ')
  throw new Error(`${violations.length} violations; what the servers said is in ${logs}:\n  ${shown}`)
}

/** Commands of all systems at once until the time is up; then those under way finish, undisturbed. */
async function drive(
  systems: readonly System[],
  report: () => void,
  calm: () => Promise<void>,
): Promise<readonly string[]> {
  const stormMs = Number(values.minutes) * 60_000
  const endMs = performance.now() + stormMs
  const broken: string[] = []
  const lane = async (system: System, numbers: Iterator<number>) => {
    while (performance.now() < endMs) {
      const number = Number(numbers.next().value)
      await system.command(number).catch((error: unknown) => {
        broken.push(`${system.name} ${number}: ${error instanceof Error ? error.message : String(error)}`)
      })
    }
  }
  const driven = systems.flatMap((system) => {
    const numbers = counted()
    return Array.from({ length: system.lanes }, () => lane(system, numbers))
  })
  const reports = setInterval(report, Number(values['report-seconds']) * 1_000)
  await Promise.all([...driven, sleep(stormMs).then(calm)])
  clearInterval(reports)
  return broken
}

function* counted(): Generator<number> {
  for (let number = 0; ; number++) yield number
}

/** However the lab ends, its servers end with it. */
function end(pid: number): void {
  if (isThere(pid)) process.kill(pid, 'SIGKILL')
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function keepLogs(servers: readonly TestServer[], name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `onceonly-storm-logs-${name}-`))
  for (const [at, { pid, lines, errors }] of servers.entries())
    await writeFile(join(folder, `server-${at}-${pid}.log`), [...lines, ...errors].join('\n'))
  return folder
}
