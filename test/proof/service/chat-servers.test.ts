import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  createStreamClient,
  createWebSocketTransport,
  type Entry,
  identityText,
  type StreamClient,
} from 'onceonly/stream'
import { until } from '../../../src/testing/until.ts'
import { openCluster } from '../../support/service/cluster.ts'

const skip = process.env['ONCEONLY_TEST_POSTGRES_URL'] === undefined ? 'no PostgreSQL server' : false
/** Longer than the right to number a room's messages, which a server that died keeps until it lapses. */
const LEASE_MS = 15_000

interface Guest {
  readonly client: StreamClient
  readonly seen: Entry[]
  readonly final: Map<number, string>
}

test('two servers on one database are one chat; when one is killed its clients continue at the other', {
  skip,
}, async () => {
  await using cluster = await openCluster('postgres', { processes: 2 })
  const [one, two] = cluster.servers
  assert.ok(one && two)
  const servers = new Map(Object.entries({ one, two }))
  const urlOf = (server: string, region: string) =>
    `${servers.get(server)?.url.replace('http', 'ws')}/chat/socket?region=${region}`

  /** The client knows two ways to its region: this server, and the other one. */
  async function enter(region: string, ways: readonly string[]): Promise<Guest> {
    const seen: Entry[] = []
    const final = new Map<number, string>()
    const client = await createStreamClient({
      room: 'lobby',
      regions: ways,
      transport: createWebSocketTransport({ url: (way) => urlOf(way, region), token: () => one?.apiKey ?? '' }),
      mode: 'at-least-once',
      from: 'start',
      receiver: {
        message: (entry) => void seen.push(entry),
        ordered: (identity, place) => void final.set(place, identityText(identity)),
      },
      bounds: { reconnectBaseMs: 20, reconnectCapMs: 100 },
    })
    after(() => client.stop())
    return { client, seen, final }
  }

  const guests = [
    await enter('frankfurt', ['one', 'two']),
    await enter('frankfurt', ['two', 'one']),
    await enter('tokyo', ['two', 'one']),
  ]
  const [ann] = guests
  assert.ok(ann)
  const said = async (guest: Guest, text: string) => (await guest.client.send({ text })).accepted
  await Promise.all(guests.map((guest, n) => said(guest, `hello from ${n}`)))
  await until('every guest has every message', () => guests.every(({ seen }) => seen.length === 3))
  await until('one order', () => guests.every(({ final }) => final.size === 3))

  // When the server dies, some of these are in its log, some are not, and some were never sent; the clients do not know which.
  const underWay: Promise<unknown>[] = []
  for (let n = 0; n < 20; n++) {
    underWay.push(said(ann, `message ${n}`))
    if (n === 5) await underWay[0]
    if (n === 10) void one.kill()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(underWay)
  assert.equal(ann.client.region, 'two')
  await said(ann, 'I am here now')
  await until('nothing is missing', () => guests.every(({ seen }) => seen.length >= 24))
  await cluster.advance(LEASE_MS)
  await until('the other server numbers on', () => guests.every(({ final }) => final.size === 24))
  const { client: name } = ann.client.identity
  for (const { seen, final } of guests) {
    assert.equal(seen.length, 24)
    assert.deepEqual(new Set(seen.map(identityText)).size, 24)
    assert.deepEqual(final, ann.final)
    assert.deepEqual(
      seen.filter(({ client }) => client === name).map(({ cseq }) => cseq),
      Array.from({ length: 22 }, (_, n) => n + 1),
    )
  }
})
