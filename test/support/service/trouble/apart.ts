import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { until } from '../../../../src/testing/until.ts'
import { startOwn } from '../../own-server.ts'
import { type Cluster, openCluster, type TestServer } from '../cluster.ts'
import { publishAs } from './make-traffic.ts'
import type { Made } from './trouble.ts'

const MINUTE_MS = 60_000

interface Apart extends AsyncDisposable {
  readonly cluster: Cluster
  readonly server: TestServer
  /** Where the store of its claims was. */
  readonly claims: string
  readonly made: Made<'apart'>
}

/** A server with Redis for its locks and NATS for its events, after both are gone. */
export async function openApart(): Promise<Apart> {
  await using stack = new AsyncDisposableStack()
  const redis = stack.use(await startOwn('redis'))
  const nats = stack.use(await startOwn('nats'))
  const env = { ONCEONLY_CLAIMS: redis.started[0]?.url ?? '', ONCEONLY_BROKER: nats.started[0]?.url ?? '' }
  const cluster = stack.use(await openCluster('sqlite', { env }))
  const server = cluster.servers[0] as TestServer
  const escalate = (caseId: string, key: string) =>
    server.post('/case-escalations', { caseId, targetQueue: 'BILLING' }, { key })
  assert.equal((await escalate('CASE-101', 'with-broker')).status, 201)
  const pending = async () => {
    const { body } = await server.console('/events')
    return (body['outbox'] as { readonly pending: number }).pending
  }
  await until('its event is published', pending, (count) => count === 0)
  const dead = await refuseMessages(cluster)
  assert.equal((await server.send({ recipientPhone: '+4915100', message: 'Before' })).body.success, true)
  await emptied(env.ONCEONLY_CLAIMS)
  assert.equal((await server.send({ recipientPhone: '+4915100', message: 'After' })).body.success, true)
  await until('the server notices', () => server.events('claims.reset').length > 0)
  await Promise.all([redis.started[0]?.halt(), nats.started[0]?.halt()])
  const sent = await server.send({ recipientPhone: '+4915101', message: 'Without a lock' })
  assert.equal(sent.body.success, true, sent.text)
  assert.equal((await escalate('CASE-102', 'without-broker')).status, 201)
  await cluster.advance(2 * MINUTE_MS)
  const disposal = stack.move()
  return {
    cluster,
    server,
    claims: env.ONCEONLY_CLAIMS,
    // Nothing has an id of what is lost.
    made: { ...dead, lostClaims: '', lostLocks: sent.body.message?._id ?? '', lostBroker: 'without-broker' },
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  }
}

/** Two messages of one key, to a topic that the broker does not have. */
async function refuseMessages(cluster: Cluster) {
  const publish = (key: string) => publishAs(cluster, key, { topic: 'no.such.topic', key: 'team-7', body: null })
  const deadMessage = await publish('refused-1')
  const parkedKey = await publish('refused-2')
  const count = async () => {
    await cluster.advance(MINUTE_MS)
    const [row] = await cluster.sql<{ readonly n: unknown }>('select count(*) as n from onceonly_outbox_dead')
    return Number(row?.n)
  }
  await until('the relay gives both up', count, (dead) => dead === 2)
  return { deadMessage, parkedKey }
}

/** As a failover to a replica that had nothing yet. */
async function emptied(url: string): Promise<void> {
  const client = new Redis(url)
  await client.flushall()
  client.disconnect()
}
