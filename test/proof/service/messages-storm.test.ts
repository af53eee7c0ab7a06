import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Servers, StartedServer } from '../../../tools/servers/index.ts'
import { startOwn } from '../../support/own-server.ts'
import { pause, resume } from '../../support/pause.ts'
import { type Cluster, openCluster, type PlaceName } from '../../support/service/cluster.ts'
import { acceptedOf, guardErrors, postAtOnce } from '../../support/service/messages/posts.ts'

const ROUNDS = 3
const posts = { count: 400, channel: 'local', keyed: false }

async function rounds(cluster: Cluster): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    for (const keyed of [false, true]) {
      const message = `round ${round} ${keyed ? 'with keys' : 'without keys'}`
      await postAtOnce(cluster, { ...posts, message, keyed })
      assert.equal((await acceptedOf(cluster, message)).all, 1, message)
    }
  }
  assert.deepEqual(guardErrors(cluster), [], 'no lock was given up')
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

  test('and one send more at the most when the store of the locks stops responding in the middle', {
    skip: postgres,
  }, async () => {
    await using servers: Servers = await startOwn('redis')
    const redis = redisOf(servers)
    await using cluster = await openCluster('postgres', { processes: 2, env: { ONCEONLY_CLAIMS: redis.url } })
    const message = 'silence'
    const before = postAtOnce(cluster, { ...posts, message })
    await pause(redis.pid)
    try {
      await Promise.all([before, postAtOnce(cluster, { ...posts, message })])
    } finally {
      resume(redis.pid)
    }
    await postAtOnce(cluster, { ...posts, message })
    const { all, unguarded } = await acceptedOf(cluster, message)
    assert.ok(all === 1 || all === 2, `${all} sends`)
    assert.ok(guardErrors(cluster).length >= unguarded, 'every send without its lock was reported')
  })
})

function redisOf(servers: Servers): StartedServer {
  const redis = servers.started[0]
  assert.ok(redis !== undefined)
  return redis
}
