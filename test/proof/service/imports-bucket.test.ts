import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ris } from '../../../service/imports/parse/test-files.ts'
import { until } from '../../../src/testing/until.ts'
import { type Answer, openCluster, type TestServer } from '../../support/service/cluster.ts'
import {
  type BucketObject,
  byEventBridge,
  bySns,
  direct,
  uploadDirectly,
} from '../../support/service/imports/bucket-events.ts'
import {
  commandsIn,
  hookSecret,
  notify,
  type Started,
  scandals,
  see,
  startImport,
} from '../../support/service/imports/imports.ts'
import { openTestBucket, PREFIX_OF_TESTS } from '../../support/service/imports/s3.ts'

const skip = process.env['ONCEONLY_TEST_POSTGRES_URL'] === undefined ? 'no PostgreSQL server' : false

const SEARCHES = 8
const files = ['a.ris', 'b.ris']
/** Past any lease of a relay, of the bus and of a record. */
const LEASE_MS = 90_000

test('a bucket announces in any order, in copies, too early and late, a server is killed: one command per file', {
  skip,
}, async () => {
  await using s3 = await openTestBucket()
  await using cluster = await openCluster('postgres', {
    processes: 2,
    env: { ...s3.env, ONCEONLY_HOOK_SECRET: hookSecret },
  })
  const watched = new Set<TestServer>(cluster.servers)

  /** As any sender: to another server, until one answers. */
  async function insist<T>(send: (server: TestServer) => Promise<T>): Promise<T> {
    const sent = await until(
      'a server answers',
      async () => {
        const server = cluster.servers[chance(cluster.servers.length)]
        return server === undefined ? null : await send(server).then(value, () => null)
      },
      (answer) => answer !== null,
    )
    assert.ok(sent !== null)
    return sent.value
  }
  const notifyUntilTaken = (body: object): Promise<Answer> =>
    insist(async (server) => {
      const answer = await notify(server, body)
      if (answer.status >= 500) throw new Error(answer.text)
      assert.equal(answer.status, 200, answer.text)
      return answer
    })
  const copies = (object: BucketObject) =>
    shuffled([direct(object), bySns(object), byEventBridge(object), bySns(object)])

  const searches: Started[] = []
  for (let n = 0; n < SEARCHES; n++) searches.push(await insist((server) => startImport(server, files)))
  const [silent, hidden, ...others] = searches
  assert.ok(silent !== undefined && hidden !== undefined)
  const objects = new Map<string, BucketObject[]>()
  const store = async ({ searchId }: Started, number: number) => {
    for (const name of shuffled(files)) {
      // Too early: nothing is in the bucket yet.
      if (number % 2 === 0)
        assert.equal((await notifyUntilTaken(direct({ searchId, name, etag: 'early', bytes: 1 }))).status, 200)
      const object = await insist((server) => uploadDirectly(server, searchId, name, ris(number)))
      objects.set(searchId, [...(objects.get(searchId) ?? []), object])
    }
  }
  for (const name of files) s3.hidden.add(`${PREFIX_OF_TESTS}/${hidden.searchId}/${name}`)
  await Promise.all(searches.map(store))

  // Copies by every way at once, and a server dies in the middle of them.
  const everything = shuffled(
    [...others, hidden].flatMap(({ searchId }) => (objects.get(searchId) ?? []).flatMap(copies)),
  )
  const half = Math.floor(everything.length / 2)
  const first = everything.slice(0, half).map(notifyUntilTaken)
  await Promise.race(first)
  await cluster.servers[0]?.kill()
  watched.add(await cluster.add())
  await cluster.advance(LEASE_MS)
  await Promise.all([...first, ...everything.slice(half).map(notifyUntilTaken)])
  s3.hidden.clear()

  // Those that nothing announced, or that could not be seen then, are found by looking.
  await until(
    'every import has ended',
    () => cluster.sql<{ n: number }>(`select count(*) as n from import_jobs where state in ('Completed', 'Error')`),
    ([row]) => Number(row?.n) === SEARCHES,
  )
  // Late copies change nothing.
  await Promise.all(
    searches.flatMap(({ searchId }) => (objects.get(searchId) ?? []).flatMap(copies)).map(notifyUntilTaken),
  )

  const [server] = cluster.servers
  assert.ok(server)
  for (const { searchId } of searches) {
    const seen = await see(server, searchId)
    assert.deepEqual([seen.state, commandsIn(seen), seen.references], ['Completed', 2, 2], JSON.stringify(seen))
  }
  const [counts] = await cluster.sql(`select (select count(*) from import_jobs) as jobs,
    (select count(*) from import_references) as refs, (select count(*) from onceonly_inbox_dead_letters) as parked,
    (select count(*) from onceonly_outbox_dead) as dead`)
  assert.deepEqual(Object.values(counts ?? {}).map(Number), [SEARCHES, SEARCHES * files.length, 0, 0])
  assert.deepEqual(scandals([...watched]), [])
})

const value = <T>(answer: T) => ({ value: answer })

/** A whole number from 0, below the bound. */
function chance(below: number): number {
  return Math.floor(Math.random() * below)
}

function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
