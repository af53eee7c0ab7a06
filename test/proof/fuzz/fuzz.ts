import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from 'onceonly/sqlite'
import { buildPages } from '../../../console/build.ts'
import { startCommands } from '../../support/admin/cli/commands.ts'
import { startGateway } from '../../support/gateway/process.ts'
import { residentMib } from '../../support/resident.ts'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'
import { throwForged } from './forged.ts'
import { throwFrames } from './frames.ts'
import { throwArguments, throwConfigurations } from './settings.ts'
import { type Thrown, throwRequests } from './throw.ts'

export interface FuzzSize {
  readonly seed: number
  /** Requests to the server, and as many to a gateway. */
  readonly requests: number
  readonly configurations: number
  readonly commands: number
  /** Forged bearer tokens, and as many tokens of regions and sessions of the console. */
  readonly forged: number
  readonly frames: number
  progress?(line: string): void
}

/** After so many inputs a process has grown to its usual size; what it gains beyond that, it never gives back. */
const GROWTH_MOST_MIB = 256

const paths = [
  '/api/messages',
  '/api/messages',
  '/case-escalations',
  '/case-escalations:batchCreate',
  '/api/imports',
  '/api/sequences',
  '/api/runs',
  '/api/projects/p1',
  '/hooks/s3',
  '/hooks/outreach',
  '/operations/00000000-0000-0000-0000-000000000000',
  '/api/console/session',
  '/api/console/actions',
  '/chat',
  '/%00',
  '/api/../api/messages',
  '//api/messages',
]
const message = { recipientEmail: 'ann@example.com', recipientPhone: '+15550100', message: 'Hello', attachments: [] }

/** Throws everything at everything: the server, a gateway, the checks of its configuration, the command, what proves something. */
export async function fuzz(size: FuzzSize): Promise<Readonly<Record<string, unknown>>> {
  return {
    configurations: throwConfigurations(size.configurations, size.seed),
    forged: await throwForged(size.forged, size.seed),
    frames: throwFrames(size.frames, size.seed),
    commands: await fuzzCommands(size),
    server: await fuzzServer(size),
    gateway: await fuzzGateway(size),
  }
}

async function fuzzCommands({ commands, seed }: FuzzSize): Promise<Record<string, number>> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-fuzz-'))
  const path = join(folder, 'store.db')
  const store = sqliteStore(path)
  await store.clock.now({ timeoutMs: 60_000 })
  await store.stop()
  await using running = startCommands(folder, { ...process.env, ONCEONLY_STORE: path })
  try {
    return await throwArguments(running, commands, seed)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function fuzzServer({ requests, seed, progress }: FuzzSize): Promise<Thrown> {
  // A server without its pages answers a good request for them with 503, and they would not be among what is thrown at.
  await buildPages()
  await using cluster = await openCluster('sqlite')
  const server = cluster.servers[0] as TestServer
  const thrown = await throwRequests({
    port: Number(new URL(server.url).port),
    authorization: `Bearer ${server.apiKey}`,
    paths,
    body: message,
    requests,
    seed,
    progress: (line) => progress?.(`server: ${line}`),
  })
  const { status } = await server.send({ recipientEmail: 'last@example.com', message: 'Still there?' })
  assert.ok(status === 200 || status === 201, `afterwards it answers ${status}`)
  assert.deepEqual(server.errors, [], 'it complained about nothing')
  return thrown
}

async function fuzzGateway({ requests, seed, progress }: FuzzSize): Promise<Thrown> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-fuzz-'))
  const service = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(201, { 'content-type': 'application/json' }).end('{}'))
    request.on('error', () => {})
  })
  await once(service.listen(0, '127.0.0.1'), 'listening')
  const ends: (() => Promise<unknown>)[] = []
  try {
    const upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
    const rules = [
      { method: 'POST', path: '/things', caller: 'shared', key: 'required' },
      { method: ['PUT', 'PATCH'], path: '/things/:id', caller: 'shared', key: 'optional', content: {} },
    ] as const
    const gateway = await startGateway({ after: (end) => void ends.push(end) }, folder, {
      config: { upstream, routes: rules },
      store: join(folder, 'gateway.db'),
    })
    const before = residentMib(gateway.pid)
    const thrown = await throwRequests({
      port: gateway.port,
      authorization: 'Bearer stranger',
      paths: ['/things', '/things', '/things/1', '/other', '/.onceonly/metrics', '/.onceonly/operations/x'],
      body: message,
      requests,
      seed,
      progress: (line) => progress?.(`gateway: ${line}`),
    })
    const { status } = await gateway.ask({ path: '/things', key: 'last', body: '{}' })
    assert.equal(status, 201, 'afterwards it forwards')
    const grown = residentMib(gateway.pid) - before
    assert.ok(grown <= GROWTH_MOST_MIB, `it grew by ${grown} MiB`)
    return thrown
  } finally {
    for (const end of ends) await end()
    service.close()
    service.closeAllConnections()
    await rm(folder, { recursive: true, force: true })
  }
}
