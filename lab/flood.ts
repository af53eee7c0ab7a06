import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { startGateway, temporaryFolder } from '../test/support/gateway/process.ts'
import { makeWorkspace, openCluster, type TestServer } from '../test/support/service/cluster.ts'
import { runFlood } from './flood/flood.ts'

/**
 * `npm run lab -- flood`: one tenant sends 2 000 requests a second, opens 500 rooms, 1 500 slow connections and 200 half-sent
 * bodies, while another sends one request a second; then the same by address at a gateway. Prints what the quiet one noticed,
 * what was refused, the peak of memory, and how long it took until all was as before.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    rate: { type: 'string', default: '2000' },
    rooms: { type: 'string', default: '500' },
    slow: { type: 'string', default: '1500' },
    half: { type: 'string', default: '200' },
    on: { type: 'string', multiple: true, default: ['server', 'gateway'] },
  },
})

const MIB = 1_024 * 1_024
const floodMs = Number(values.seconds) * 1_000
const common = { rate: Number(values.rate), slow: Number(values.slow), halfSent: Number(values.half) }
const ends: (() => Promise<unknown>)[] = []
const context = { after: (end: () => Promise<unknown>) => void ends.push(end) }
const gaugesOf = (text: string) =>
  ['onceonly_http_requests_under_way', 'onceonly_http_requests_waiting', 'onceonly_http_body_bytes'].map((name) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]),
  )
const areZero = (gauges: readonly number[]) => gauges.every((gauge) => gauge === 0)

async function floodServer(): Promise<boolean> {
  await using cluster = await openCluster('sqlite', { env: { ONCEONLY_LOG_LEVEL: 'warn' } })
  const server = cluster.servers[0] as TestServer
  const token = await makeWorkspace(server, 'quiet')
  const port = Number(new URL(server.url).port)
  const headers = { authorization: 'Bearer operator-token-of-tests' }
  return await runFlood(
    {
      name: 'server',
      pid: server.pid,
      flood: {
        ...common,
        port,
        path: '/api/messages',
        token: server.apiKey,
        rooms: Number(values.rooms),
        halfSentBytes: 8 * MIB,
      },
      quiet: { path: '/api/messages', token, localAddress: '127.0.0.1' },
      isIdle: async () => areZero(gaugesOf(await (await fetch(`${server.url}/metrics`, { headers })).text())),
    },
    floodMs,
  )
}

async function floodGateway(): Promise<boolean> {
  const service = createServer((request, response) => {
    request.on('error', () => {}).resume()
    request.once('end', () => response.end('{}'))
  })
  await once(service.listen(0, '127.0.0.1'), 'listening')
  context.after(async () => {
    service.close()
    service.closeAllConnections()
  })
  const upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const gateway = await startGateway(context, await temporaryFolder(context), { config: { upstream }, store: 'memory' })
  const metrics = { method: 'GET', path: '/.onceonly/metrics', key: null, body: null }
  return await runFlood(
    {
      name: 'gateway',
      pid: gateway.pid,
      flood: { ...common, port: gateway.port, path: '/things', token: 'flood', rooms: 0, halfSentBytes: MIB },
      quiet: { path: '/things', token: 'quiet', localAddress: '127.0.0.2' },
      isIdle: async () => areZero(gaugesOf((await gateway.ask(metrics)).body)),
    },
    floodMs,
  )
}

try {
  const targets = { server: floodServer, gateway: floodGateway }
  for (const [name, flood] of Object.entries(targets)) {
    if (values.on.includes(name) && !(await flood())) process.exitCode = 1
  }
} finally {
  for (const end of ends.reverse()) await end()
}
