import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe } from 'node:test'
import { Connection } from 'rabbitmq-client'
import type { HistoryView } from '../../../../service/imports/history.ts'
import { BUCKET } from '../../../../service/imports/uploads/notification.ts'
import type { ImportView } from '../../../../service/imports/view.ts'
import { until } from '../../../../src/testing/until.ts'
import { natsUrl, openNatsWorld } from '../../events/brokers/nats-world.ts'
import { rabbitmqUrl } from '../../events/brokers/rabbitmq-world.ts'
import { type Answer, type Cluster, openCluster, type PlaceName, type TestServer } from '../cluster.ts'
import { ask, upload } from './upload.ts'

export { ask, upload }

export const hookSecret = 'hook-secret-of-tests'

/** Which store and which broker; the servers know nothing else of it. */
interface World {
  /** Servers on one store and one broker. */
  open(processes: number, env?: Readonly<Record<string, string>>): Promise<Cluster>
  end(): Promise<void>
}

const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL'] === undefined ? 'no PostgreSQL server' : null

/** `postgres` is PostgreSQL with the bus inside of it; only the lab takes the time for it. */
export type WorldName = 'sqlite' | 'postgres' | 'rabbitmq' | 'nats'

const worlds: readonly { readonly name: WorldName; readonly title: string; readonly skip: string | false }[] = [
  { name: 'sqlite', title: 'SQLite and its own bus', skip: false },
  {
    name: 'rabbitmq',
    title: 'PostgreSQL and RabbitMQ',
    skip: postgres ?? (rabbitmqUrl === undefined ? 'no RabbitMQ server' : false),
  },
  {
    name: 'nats',
    title: 'PostgreSQL and NATS',
    skip: postgres ?? (natsUrl === undefined ? 'no NATS server' : false),
  },
]

export async function openWorld(name: WorldName): Promise<World> {
  switch (name) {
    case 'sqlite':
    case 'postgres':
      return world(name, '')
    case 'rabbitmq':
      return rabbitmqWorld(rabbitmqUrl ?? '')
    case 'nats':
      return natsWorld(natsUrl ?? '')
  }
}

/** The same tests in every world, one world after the other: each has servers of its own. */
export function inEveryWorld(what: string, body: (open: World['open'], place: PlaceName) => void): void {
  inWorlds(
    worlds.map(({ name }) => name),
    what,
    body,
  )
}

export function inWorlds(
  names: readonly WorldName[],
  what: string,
  body: (open: World['open'], place: PlaceName) => void,
): void {
  for (const { name, title, skip } of worlds.filter((world) => names.includes(world.name))) {
    describe(`${what} on ${title}`, { skip, concurrency: false }, () => {
      let opened: World | null = null
      body(
        async (processes, env) => {
          opened ??= await openWorld(name)
          return opened.open(processes, env)
        },
        name === 'sqlite' ? 'sqlite' : 'postgres',
      )
      after(() => opened?.end())
    })
  }
}

function world(place: PlaceName, brokerUrl: string, end = async () => {}): World {
  const clusters: Cluster[] = []
  return {
    async open(processes, env = {}) {
      const settings = { ONCEONLY_BROKER: brokerUrl, ONCEONLY_HOOK_SECRET: hookSecret, ...env }
      const cluster = await openCluster(place, { processes, env: settings })
      clusters.push(cluster)
      return cluster
    },
    async end() {
      await Promise.all(clusters.map((cluster) => cluster[Symbol.asyncDispose]()))
      await end()
    },
  }
}

async function natsWorld(url: string): Promise<World> {
  const { namespace, end } = await openNatsWorld(url)
  return world('postgres', `${url}?namespace=${namespace}`, end)
}

const consumers = ['imports.received', 'imports.parser', 'saga.SearchImportJob', 'escalations.notices']
const waits = ['', '.later.250', '.later.1000', '.later.4000', '.later.16000', '.later.60000']

async function rabbitmqWorld(url: string): Promise<World> {
  const namespace = `test-${randomBytes(6).toString('hex')}`
  return world('postgres', `${url}?namespace=${namespace}`, async () => {
    const connection = new Connection(url)
    for (const consumer of consumers) {
      for (const wait of waits) await connection.queueDelete({ queue: `${namespace}.${consumer}${wait}` })
    }
    await connection.exchangeDelete({ exchange: namespace })
    await connection.close()
  })
}

export type Seen = ImportView & { readonly history: readonly HistoryView[] }

export interface Started {
  readonly searchId: string
  readonly uploads: readonly { readonly name: string; readonly url: string; readonly objectKey: string }[]
}

export async function startImport(server: TestServer, files: readonly string[], projectId = 'p-1'): Promise<Started> {
  const answer = await server.post('/api/imports', { projectId, searchName: 'Retries', files })
  assert.equal(answer.status, 201, answer.text)
  return answer.body as unknown as Started
}

/** As S3 would send it. The time differs from copy to copy, as theirs may. */
export function notification(searchId: string, name: string, etag = 'etag', sequencer = '0055'): object {
  return {
    Records: [
      {
        eventVersion: '2.1',
        eventSource: 'aws:s3',
        eventTime: new Date().toISOString(),
        eventName: 'ObjectCreated:Put',
        s3: {
          bucket: { name: BUCKET },
          object: { key: `imports/${searchId}/${encodeURIComponent(name)}`, eTag: etag, size: 1, sequencer },
        },
      },
    ],
  }
}

export function notify(server: TestServer, body: object | string, secret = hookSecret): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return ask(server, 'POST', '/hooks/s3', text, { 'x-hook-secret': secret, 'content-type': 'application/json' })
}

export async function see(server: TestServer, searchId: string): Promise<Seen> {
  const answer = await server.get(`/api/imports/${searchId}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body as unknown as Seen
}

export interface ReferencePage {
  readonly references: readonly { readonly file: string; readonly number: number; readonly title: string }[]
  readonly cursor: string | null
}

export async function referencesOf(server: TestServer, searchId: string, query = ''): Promise<ReferencePage> {
  const answer = await server.get(`/api/imports/${searchId}/references${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body as unknown as ReferencePage
}

/** Until the import has ended, one way or the other. */
export function ended(server: TestServer, searchId: string): Promise<Seen> {
  return untilSeen('the import has ended', server, searchId, ({ state }) => state === 'Completed' || state === 'Error')
}

/** As `until`, for the state of an import; the error of a timeout has the server's output. */
export async function untilSeen(
  what: string,
  server: TestServer,
  searchId: string,
  enough: (seen: Seen) => boolean,
): Promise<Seen> {
  try {
    return await until(what, () => see(server, searchId), enough)
  } catch (error) {
    throw new Error([...server.lines, ...server.errors].join('\n'), { cause: error })
  }
}

/** How many commands were given for each file of an import, past every interface: what the saga says it sent. */
export function commandsIn({ history }: Seen): number {
  return history.reduce((sum, { sent }) => sum + (sent['StartParsingReferenceFile'] ?? 0), 0)
}

/** Lines that an operator should never see in any of this. */
export function scandals(servers: readonly TestServer[]): readonly string[] {
  const scandal = /not accepted|saga_not_accepted|duplicate key|UNIQUE constraint|deadlock/i
  return servers.flatMap(({ lines, errors }) => [...lines, ...errors]).filter((line) => scandal.test(line))
}
