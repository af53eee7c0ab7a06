import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../src/testing/until.ts'
import type { Answer, Cluster, TestServer } from '../../test/support/service/cluster.ts'
import { countOf, type System, type World } from './world.ts'

interface Card {
  readonly identity: { readonly operation: string; readonly key: string }
}

/** One row of the list of everything unknown. */
type Unknown = ({ readonly kind: 'record' } & Card) | { readonly kind: 'step' | 'run'; readonly runId: string }

/** Past every lease, time-out and redelivery together, on a machine that does other things as well. */
const REST_MS = 600_000
const LOOK_EVERY_MS = 2_000
/** What waits for its time, such as a retry with back-off, is not waited for: the clock is moved. */
const MOVE_AFTER_LOOKS = 5
const MOVE_MS = 30_000
/** A thing seen at rest once may only be between two steps. */
const LOOKS_AT_REST = 3
const PAGE = 100

/** Waits until nothing is left to do; answers what still is when the time is up. */
export async function untilAtRest(
  world: World,
  systems: readonly System[],
  say: (line: string) => void,
): Promise<readonly string[]> {
  const endMs = performance.now() + REST_MS
  let before = ''
  let same = 0
  let quiet = 0
  for (;;) {
    const left = await leftIn(world, systems)
    quiet = left.length === 0 ? quiet + 1 : 0
    if (quiet >= LOOKS_AT_REST || performance.now() > endMs) return left
    const now = left.join('; ')
    same = now === before && now !== '' ? same + 1 : 0
    if (now !== before) say(now === '' ? 'Nothing is left.' : `Left: ${now}`)
    before = now
    if (same >= MOVE_AFTER_LOOKS) {
      same = 0
      const [server] = world.cluster.servers
      await server?.admin('PUT', '/test-clock', { advanceMs: MOVE_MS })
      say(`The clock is moved by ${MOVE_MS / 1_000} s`)
    }
    await sleep(LOOK_EVERY_MS)
  }
}

async function leftIn(world: World, systems: readonly System[]): Promise<readonly string[]> {
  const running = await rowsOf<Card>(world.cluster, '/records?state=in_progress')
  const tables = {
    'messages of the outbox': 'onceonly_outbox_rows',
    'failing lines of the outbox': 'onceonly_outbox_failing',
    'deliveries of the bus': 'onceonly_local_deliveries',
    'timers of sagas': 'onceonly_saga_pending',
  }
  const counted = await Promise.all(
    Object.entries(tables).map(async ([what, table]) => {
      const count = await countOf(world, table)
      return count === 0 ? [] : [`${count} ${what}`]
    }),
  )
  const ofSystems = await Promise.all(systems.map((system) => system.left()))
  const doubtful = (await unknownRecords(world.cluster)).filter((card) => !isDelivery(card) && !isLock(card))
  return [
    ...ofSystems.flat(),
    ...counted.flat(),
    ...(running.length === 0 ? [] : [`records in progress: ${tally(running)}`]),
    ...(doubtful.length === 0 ? [] : [`records that only a probe can settle: ${tally(doubtful)}`]),
  ]
}

const isDelivery = ({ identity }: Card) => identity.operation === 'messages.deliver'
/** Its holder died: the content stays blocked until its window ends, and then nothing is left of it. */
const isLock = ({ identity }: Card) => identity.operation === 'guard.messages'
/** The window of the guard, and a while for the sweep. */
const WINDOW_MS = 16 * 60_000

/**
 * What must hold for the whole server, whatever the systems say: unknowns are listed, and nothing else stays behind.
 */
export async function judgeRest(world: World, folder: string): Promise<readonly string[]> {
  const { cluster } = world
  const wrong: string[] = []
  for (const table of ['onceonly_outbox_dead', 'onceonly_inbox_dead_letters']) {
    const dead = await countOf(world, table)
    if (dead > 0) wrong.push(`${dead} rows in ${table}`)
  }
  // 1. Operators and clients see the same unknown messages.
  const rows = await cluster.sql<{ id: string }>(`select id from messages where status = 'unknown'`)
  const stored = rows.map(({ id }) => id).toSorted()
  const records = (await unknownRecords(cluster))
    .filter(isDelivery)
    .map(({ identity }) => identity.key)
    .toSorted()
  const listed = (await unknownMessages(cluster)).toSorted()
  if (stored.join() !== records.join())
    wrong.push(`${stored.length} messages are unknown, ${records.length} records: ${differ(stored, records)}`)
  if (stored.join() !== listed.join())
    wrong.push(`${stored.length} messages are unknown, ${listed.length} are listed: ${differ(stored, listed)}`)
  const runs = (await cluster.sql<{ id: string }>(`select id from onceonly_runs where state = 'unknown'`)).map(
    ({ id }) => id,
  )
  const listedRuns = await unknownRuns(cluster)
  if (runs.toSorted().join() !== listedRuns.toSorted().join())
    wrong.push(`${runs.length} runs are unknown, ${listedRuns.length} are listed: ${differ(runs, listedRuns)}`)
  // 2. What a killed server was storing is removed by age; it is never taken for a file.
  const unfinished = await readdir(join(folder, 'uploads', 'unfinished'))
  if (unfinished.length > UNFINISHED_MOST) wrong.push(`${unfinished.length} unfinished files are left`)
  // 3. Locks whose holders died end with their window.
  await cluster.servers[0]?.admin('PUT', '/test-clock', { advanceMs: WINDOW_MS })
  const locks = await until(
    'every lock has ended',
    async () => (await unknownRecords(cluster)).filter(isLock),
    (held) => held.length === 0,
  ).catch((error: unknown) => [error])
  if (locks.length > 0) wrong.push(`locks outlive their window: ${String(locks[0])}`)
  return wrong
}

/** A kill interrupts the few uploads under way; more than these would be a leak. */
const UNFINISHED_MOST = 200

function differ(some: readonly string[], others: readonly string[]): string {
  const only = (from: readonly string[], without: readonly string[]) => from.filter((id) => !without.includes(id))
  return [...only(some, others), ...only(others, some)].slice(0, 5).join(', ')
}

async function unknownRecords(cluster: Cluster): Promise<readonly Card[]> {
  return (await rowsOf<Unknown>(cluster, '/unknowns?')).filter((row) => row.kind === 'record')
}

async function unknownRuns(cluster: Cluster): Promise<readonly string[]> {
  const rows = await rowsOf<Unknown>(cluster, '/unknowns?')
  return [...new Set(rows.flatMap((row) => (row.kind === 'record' ? [] : [row.runId])))]
}

async function rowsOf<T>(cluster: Cluster, path: string): Promise<readonly T[]> {
  return pages<T>(cluster, (server, cursor) => server.console(`${path}&limit=${PAGE}${cursor}`), 'rows')
}

async function unknownMessages(cluster: Cluster): Promise<readonly string[]> {
  const path = `/api/messages?status=unknown&limit=${PAGE}`
  const all = await pages<{ _id: string }>(cluster, (server, cursor) => server.get(path + cursor), 'messages')
  return all.map(({ _id }) => _id)
}

async function pages<T>(
  { servers }: Cluster,
  read: (server: TestServer, cursor: string) => Promise<Answer>,
  member: string,
): Promise<readonly T[]> {
  const [server] = servers
  if (server === undefined) throw new Error('No server is left to ask')
  const all: T[] = []
  for (let cursor = ''; ; ) {
    const { status, text, body } = await read(server, cursor)
    if (status !== 200) throw new Error(`${status}: ${text}`)
    all.push(...(body[member] as T[]))
    if (body['cursor'] === null || body['cursor'] === undefined) return all
    cursor = `&cursor=${encodeURIComponent(String(body['cursor']))}`
  }
}

function tally(cards: readonly Card[]): string {
  const by = Map.groupBy(cards, ({ identity }) => identity.operation)
  return [...by].map(([operation, of]) => `${of.length} ${operation}`).join(', ')
}
