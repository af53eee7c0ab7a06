import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import type { Servers, StartedServer } from '../../../tools/servers/index.ts'
import { startOwn } from '../../support/own-server.ts'
import { pause, resume } from '../../support/pause.ts'
import { type Answer, type Cluster, openCluster, type PlaceName } from '../../support/service/cluster.ts'

const POSTS = 400
const ROUNDS = 3
const GUARD_ERROR = 'message.api.duplicate_guard_error'

/** All posts of one round at once, on two processes in turn; answers what they were told. */
async function storm(cluster: Cluster, message: string, keyed: boolean): Promise<readonly number[]> {
  const { servers } = cluster
  const answers = await Promise.all(
    Array.from({ length: POSTS }, (_, at) => {
      const server = servers[at % servers.length]
      assert.ok(server !== undefined)
      const body = { channel: 'local', recipientEmail: 'storm@example.com', message }
      return untilAnswered(() => server.send(body, keyed ? { key: `${message}-${at}`.replaceAll(' ', '-') } : {}))
    }),
  )
  return answers.map(({ status, body }) => {
    assert.ok(status === 200 || status === 201, `${status}: ${JSON.stringify(body)}`)
    return status
  })
}

/** A machine that is too busy answers 503, which every client repeats. */
async function untilAnswered(ask: () => Promise<Answer>): Promise<Answer> {
  return until('an answer that is not 503', ask, ({ status }) => status !== 503)
}

async function sends(cluster: Cluster, message: string): Promise<number> {
  const [row] = await cluster.sql<{ n: unknown }>(`select count(*) as n from messages where body = '${message}'`)
  return Number(row?.n)
}

async function rounds(cluster: Cluster): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    for (const keyed of [false, true]) {
      const message = `round ${round} ${keyed ? 'with keys' : 'without keys'}`
      await storm(cluster, message, keyed)
      assert.equal(await sends(cluster, message), 1, message)
    }
  }
  const errors = cluster.servers.flatMap((server) => server.events(GUARD_ERROR))
  assert.deepEqual(errors, [], 'no lock was given up')
}

const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL'] === undefined ? 'no PostgreSQL server' : false

describe('400 identical posts at once, over two processes, are one send', () => {
  for (const place of ['sqlite', 'postgres'] satisfies PlaceName[]) {
    test(`on ${place}`, { skip: place === 'postgres' ? postgres : false }, async () => {
      await using cluster = await openCluster(place, { processes: 2 })
      await rounds(cluster)
    })
  }

  test('on postgres, with locks on redis', { skip: postgres }, async () => {
    await using servers: Servers = await startOwn('redis')
    await using cluster = await openCluster('postgres', {
      processes: 2,
      env: { ONCEONLY_CLAIMS: redisOf(servers).url },
    })
    await rounds(cluster)
  })

  test('and one send more at the most when the locks fall silent in the middle', { skip: postgres }, async () => {
    await using servers: Servers = await startOwn('redis')
    const redis = redisOf(servers)
    await using cluster = await openCluster('postgres', { processes: 2, env: { ONCEONLY_CLAIMS: redis.url } })
    const message = 'silence'
    const before = storm(cluster, message, false)
    await pause(redis.pid)
    try {
      await Promise.all([before, storm(cluster, message, false)])
    } finally {
      resume(redis.pid)
    }
    await storm(cluster, message, false)
    const count = await sends(cluster, message)
    assert.ok(count === 1 || count === 2, `${count} sends`)
    const unguarded = await cluster.sql<{ n: unknown }>(
      `select count(*) as n from messages where body = '${message}' and lock_claim is null`,
    )
    const errors = cluster.servers.flatMap((server) => server.events(GUARD_ERROR))
    assert.ok(errors.length >= Number(unguarded[0]?.n), 'every send without its lock was reported')
  })
})

function redisOf(servers: Servers): StartedServer {
  const redis = servers.started[0]
  assert.ok(redis !== undefined)
  return redis
}
