import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { findProgram, promtool } from '../../../tools/servers/programs.ts'
import { type Commands, startCommands } from '../../support/admin/cli/commands.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { guarded, openCounting, things } from '../../support/gateway/world.ts'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'
import { startMail } from '../../support/service/messages/mail.ts'
import { assertAlerts, type Observed, valueOf } from '../../support/service/trouble/alerts.ts'
import { makeLibrary, openApart } from '../../support/service/trouble/apart.ts'
import { makeTrouble } from '../../support/service/trouble/make.ts'
import { type Place, type Trouble, type TroubleName, tableOf, troubles } from '../../support/service/trouble/trouble.ts'

const program = await findProgram(promtool)
const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']
const skip = program === null ? 'promtool is not installed' : postgres === undefined ? 'no PostgreSQL server' : false
const docs = join(import.meta.dirname, '../../../docs/operating')
const all: readonly (readonly [TroubleName, Trouble])[] = Object.entries(troubles) as [TroubleName, Trouble][]

/** How one place is asked: the command line on its store, its console, its metrics. */
interface Asking {
  readonly commands: Commands
  /** Null where the process has none. */
  readonly console: ((path: string) => Promise<string>) | null
  /** Of each of its processes. */
  metrics(): Promise<readonly string[]>
}

/** Commands whose path in the console is another word. */
const renamed: Readonly<Record<string, string>> = { rooms: '/streams', queue: '/queues' }

/** `runs --state failed` is `/runs?state=failed` of the console: both run the same row of the table. */
function pathOf(command: string): string {
  const [first = '', second = '', third = ''] = command.split(' ')
  const query = new URLSearchParams(
    [...command.matchAll(/--(\w+)(?: (?!--)(\S+))?/g)].map(([, name = '', value = 'true']): [string, string] => [
      name,
      value,
    ]),
  )
  if (first === 'explain') query.set('key', second)
  const path = first === 'saga' ? `/sagas/${third}/instances` : (renamed[first] ?? `/${first}`)
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

test('whatever goes wrong, command line, console, metrics, alerts and runbook say the same of it', {
  skip,
}, async (context) => {
  await using mail = await startMail()
  await using cluster = await openCluster('postgres', {
    processes: 2,
    env: { ONCEONLY_SMTP_URL: mail.url, ONCEONLY_SEND_TIMEOUT_MS: '60000' },
  })
  const [one, two] = cluster.servers as [TestServer, TestServer]
  const folder = await temporaryFolder(context)
  // They hang for as long as the test takes.
  const timeouts = { answerMs: 600_000 }
  const held: string[] = []
  const upstream = await openCounting(context, (request, response, { url }) => {
    if (url === '/cut') request.socket.destroy()
    else if (url === '/slow' || url === '/same') held.push(url)
    else response.writeHead(201).end('paid')
  })
  const token = 'the-token-of-operators'
  const gatewayStore = join(folder, 'gateway.db')
  const gateway = await startGateway(context, folder, {
    store: gatewayStore,
    config: {
      upstream: upstream.url,
      routes: [
        ...['cut', 'pay'].map((operation) => ({ ...things, path: `/${operation}`, operation })),
        { ...things, path: '/slow', operation: 'slow', whileRunning: 'conflict', timeouts },
        { ...guarded, path: '/same', operation: 'same', timeouts },
      ],
      console: { port: 0, operatorToken: token },
    },
  })
  const consoleUrl = await until('the gateway prints where its console is', () =>
    gateway.lines.map((line) => /^Its console is (http:\S+)\/console/.exec(line)?.[1]).find((url) => url !== undefined),
  )
  const get = async (url: string, bearer: string) =>
    await (await fetch(url, { headers: { authorization: `Bearer ${bearer}` } })).text()
  const operator = 'operator-token-of-tests'
  await using serverCommands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: cluster.address })
  await using apart = await openApart()
  const library = join(folder, 'library.db')
  const alone = await makeLibrary(library)
  await using libraryCommands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: library })
  await using apartCommands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: apart.cluster.address })
  await using gatewayCommands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: gatewayStore })
  const places: Readonly<Record<Place, Asking>> = {
    server: {
      commands: serverCommands,
      console: (path) => get(`${one.url}/api/console${path}`, operator),
      // A retry that came too early came to the other process.
      metrics: () => Promise.all([one, two].map(({ url }) => get(`${url}/metrics`, operator))),
    },
    gateway: {
      commands: gatewayCommands,
      console: (path) => get(`${consoleUrl}/api/console${path}`, token),
      metrics: async () => [await get(`http://127.0.0.1:${gateway.port}/.onceonly/metrics`, token)],
    },
    apart: {
      commands: apartCommands,
      console: (path) => get(`${apart.server.url}/api/console${path}`, operator),
      metrics: async () => [await get(`${apart.server.url}/metrics`, operator)],
    },
    library: { commands: libraryCommands, console: null, metrics: alone.metrics },
  }

  const made = {
    ...(await makeTrouble({ cluster, mail, gateway: { ...gateway, held } })),
    ...apart.made,
    ...alone.made,
  }
  const observed: Observed[] = []
  for (const [name, trouble] of all) {
    if (name === 'lostStore') continue
    const { commands, console, metrics } = places[trouble.at]
    const id = made[name]
    const command = trouble.command.replace('ID', id)
    const shown = trouble.shows ?? id
    const shows = (text: string) => text.replaceAll(/[ \n]/g, '').includes(shown)
    const listed = async () => (await commands.run(...command.split(' '), '--json')).stdout
    await until(`${name}: the command line shows ${shown}`, listed, shows)
    if (console !== null) await until(`${name}: the console shows ${shown}`, () => console(pathOf(command)), shows)
    const found = await commands.run('find', id, '--json')
    assert.equal(found.status, 0, `${name}: find ${id}: ${found.stdout}`)
    const { metric, alert, above = 0 } = trouble
    if (metric === null) continue
    const counted = async () => Math.max(...(await metrics()).map((text) => valueOf(text, metric) ?? 0))
    const value = await until(`${name}: ${metric} counts it`, counted, (count) => count > above)
    observed.push({ series: metric, value, alert })
  }
  await assertOneList(places.server)
  await assertOneList(places.gateway)
  for (const { metrics } of Object.values(places)) for (const text of await metrics()) assertMetrics(text)

  // The last one: without its store nothing else can be asked.
  const reconnect = await cluster.cutOff()
  const { metric: gauge, alert } = troubles.lostStore
  const isUp = async () => valueOf(await get(`${one.url}/metrics`, operator), gauge)
  await until('the gauge says so', isUp, (up) => up === 0)
  observed.push({ series: gauge, value: 0, alert })
  const doctor = await serverCommands.run('doctor')
  assert.deepEqual([doctor.status, /cannot be reached/.test(doctor.stderr)], [2, true], doctor.stderr)
  await reconnect()
  await assertAlerts(program ?? '', observed)
})

/** The list of what waits for a decision is as long as its four gauges say, on every interface. */
async function assertOneList({ commands, console, metrics }: Asking): Promise<void> {
  const gauges = ['dedup_unknown_waiting', 'runs_unknown', 'outbox_dead_letters', 'inbox_dead_letters']
  const [cli, page] = await Promise.all([commands.run('unknowns', '--json'), console?.('/unknowns') ?? '{}'])
  const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id).toSorted()
  const rows = idsOf(JSON.parse(cli.stdout) as { id: string }[])
  assert.deepEqual(idsOf((JSON.parse(page) as { rows: { id: string }[] }).rows), rows)
  const series = new RegExp(`^onceonly_(?:${gauges.join('|')})(?:\\{.*\\})? (\\d+)$`, 'gm')
  const sum = async () => {
    const [text = ''] = await metrics()
    return [...text.matchAll(series)].reduce((total, [, count]) => total + Number(count), 0)
  }
  await until('the gauges count what the list has', sum, (count) => count === rows.length)
}

function assertMetrics(text: string): void {
  assert.match(text, /^process_cpu_seconds_total /m)
  assert.match(text, /^nodejs_eventloop_active_seconds_total /m)
  for (const [line] of text.matchAll(/^[^#\n].*$/gm))
    assert.match(line, /^(?:onceonly|process|nodejs)_\w+(?:\{.*\})? \S+$/)
}

test('the server’s own metrics pass promtool', { skip }, async () => {
  await using cluster = await openCluster('sqlite')
  const one = cluster.servers[0] as TestServer
  await one.send({ recipientPhone: '+4915100', message: 'Count me' })
  const headers = { authorization: 'Bearer operator-token-of-tests' }
  const text = await (await fetch(`${one.url}/metrics`, { headers })).text()
  const checked = spawnSync(program ?? '', ['check', 'metrics'], { encoding: 'utf8', input: text })
  assert.deepEqual([checked.status, checked.stdout + checked.stderr], [0, ''])
})

test('the runbook has a line for every alert, with the command that shows it; the documentation has the table', async () => {
  const runbook = await readFile(join(docs, 'runbook.md'), 'utf8')
  const rules = await readFile(join(docs, '../../ops/alerts.yaml'), 'utf8')
  for (const [name, { alert, command }] of all) {
    if (alert === null) continue
    const look = new RegExp(`^\\| \`${alert}\` \\| [^|]*\`onceonly ${command}\``, 'm')
    assert.match(runbook, look, `${name}: the runbook tells to look with \`onceonly ${command}\``)
    const rule = rules.slice(rules.indexOf(`alert: ${alert}`)).split('- alert:')[0] ?? ''
    assert.ok(rule.includes(`onceonly ${command}`), `${name}: the alert tells the same as the runbook: ${rule}`)
  }
  const made = new Set(all.map(([, { alert }]) => alert))
  for (const [, name = ''] of rules.matchAll(/- alert: (\w+)/g)) assert.ok(made.has(name), `no trouble fires ${name}`)
  const table = tableOf(all.map(([, trouble]) => trouble))
  const page = await readFile(join(docs, 'trouble.md'), 'utf8')
  assert.ok(page.includes(table), `docs/operating/trouble.md must have this table:\n${table}`)
})
