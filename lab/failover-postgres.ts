import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Store } from 'onceonly'
import type { RecordsLost } from 'onceonly/postgres'
import { postgresStore } from 'onceonly/postgres'
import { Client, Pool } from 'pg'
import { examine } from '../src/admin/core/doctor.ts'
import type { PatroniCluster } from '../tools/clusters/patroni.ts'
import { startPatroni } from '../tools/clusters/patroni.ts'
import { startLoad, whatIsKept } from './failover/load.ts'
import { createReporter, type Harm, harm, skipLoudly, stopOnSignals } from './failover/report.ts'

/**
 * `npm run lab -- failover-postgres`: three PostgreSQL nodes under Patroni, with etcd and HAProxy. Under load the primary is
 * killed, and then paused and woken when a standby has taken over; it comes back each time.
 *
 * With a synchronous standby nothing acknowledged is lost, no effect happens twice and fences never go back. Without one
 * the laboratory says what was lost.
 */
const { values } = parseArgs({
  options: {
    /** `synchronous`, `asynchronous` or `both`. */
    mode: { type: 'string', default: 'both' },
    nodes: { type: 'string', default: '3' },
    callers: { type: 'string', default: '8' },
    /** How often the primary is killed and how often it is paused, in turns. */
    rounds: { type: 'string', default: '1' },
  },
})

const PROCESSES = 2
const POOL = 8
const REST_MS = 20
const ANSWERS = 100
const BOUND_MS = 180_000
/** Acknowledged by the primary alone. */
const BEHIND_MS = 3_000

const modes = values.mode === 'both' ? ['synchronous', 'asynchronous'] : [values.mode]
for (const mode of modes) {
  const say = createReporter(mode)
  say('starting etcd, three PostgreSQL nodes and HAProxy …')
  const cluster = await startPatroni({ nodes: Number(values.nodes), synchronous: mode === 'synchronous' })
  if (cluster === null) {
    skipLoudly('PostgreSQL with Patroni')
    break
  }
  stopOnSignals(cluster.stop)
  try {
    await failover(cluster, mode === 'synchronous', say)
  } finally {
    await cluster.stop()
  }
}

type Say = ReturnType<typeof createReporter>

async function failover(cluster: PatroniCluster, isSafe: boolean, say: Say): Promise<void> {
  const pools = Array.from({ length: PROCESSES + 1 }, () => {
    const pool = new Pool({ connectionString: cluster.url, max: POOL, connectionTimeoutMillis: 3_000 })
    pool.on('error', () => {})
    return pool
  })
  const reports: RecordsLost[][] = []
  const stores = pools.map((pool) => {
    const own: RecordsLost[] = []
    reports.push(own)
    return postgresStore(pool, { on: (event) => void own.push(event) })
  })
  const [judge, judges] = [stores.pop(), pools.at(-1)]
  assert.ok(judge !== undefined && judges !== undefined)
  await judges.query('CREATE TABLE lab_rows (key text NOT NULL)')
  await report(judge, say)

  const row = (tx: unknown, key: string) =>
    (tx as { query(text: string, values: string[]): Promise<unknown> }).query('INSERT INTO lab_rows (key) VALUES (?)', [
      key,
    ])
  const load = startLoad({ stores, callers: Number(values.callers), row, restMs: REST_MS })
  await load.untilAnswered(ANSWERS, BOUND_MS)
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const how of ['kill', 'pause'] as const) await once(cluster, how, load, say)
  }
  if (!isSafe) await losing(cluster, load, say)
  await load.stop()

  const kept = await whatIsKept(judge, load.book, true)
  const doubled = await judges.query('SELECT key FROM lab_rows GROUP BY key HAVING count(*) > 1')
  const rows = new Set((await judges.query<{ key: string }>('SELECT key FROM lab_rows')).rows.map(({ key }) => key))
  const rowless = [...load.book.acknowledged.keys()].filter((key) => key.startsWith('t') && !rows.has(key))
  const twice = [...load.book.effects].filter(([, times]) => times > 1).map(([key]) => key)
  const { book } = load
  say('the books', {
    acknowledged: kept.asked,
    lost: kept.lost.length,
    held: kept.held.length,
    rowsLost: rowless.length,
    rowsTwice: doubled.rows.length,
    effectsTwice: twice.length,
    unknown: book.unknown.size,
    reported: reports.flat().map(({ ids, of }) => `${ids.length} of ${of}`),
    events: Object.fromEntries(book.events),
  })
  for (const store of [...stores, judge]) await store.stop()
  for (const pool of pools) await pool.end()
  assert.deepEqual(book.violations, [], 'no answer contradicts another')
  assert.deepEqual(kept.changed, [], 'no answer changes')
  assert.equal(doubled.rows.length, 0, 'no row is there twice')
  if (!isSafe) {
    if (kept.lost.length + kept.held.length > 0)
      assert.ok(
        reports.slice(0, PROCESSES).every(({ length }) => length > 0),
        'every process reports what was lost',
      )
    return
  }
  assert.deepEqual([...kept.lost, ...kept.held], [], 'nothing acknowledged is lost')
  assert.deepEqual(rowless, [], 'no row that was acknowledged is lost')
  assert.deepEqual(twice, [], 'no effect ran twice')
  assert.deepEqual(reports.flat(), [], 'nothing is reported as lost')
}

async function once(cluster: PatroniCluster, how: Harm, load: ReturnType<typeof startLoad>, say: Say): Promise<void> {
  const primary = await cluster.primary()
  assert.ok(primary !== null, 'there is a primary')
  const [before, sinceMs, known] = [load.newestFence(), performance.now(), new Set(load.book.acknowledged.keys())]
  const back = await harm(primary, how)
  say(`${primary.name} is ${how === 'kill' ? 'killed' : 'paused'}`, { acknowledged: known.size })
  await load.untilAnswered(ANSWERS, BOUND_MS)
  const recoveryMs = Math.round(load.longestGapMs(sinceMs))
  const successor = await cluster.primary()
  const older = [...load.book.acknowledged].filter(([key, { atMs, fence }]) => {
    return !known.has(key) && atMs > sinceMs + recoveryMs + 1_000 && fence <= before
  })
  say(`${successor?.name} answers`, { recoveryMs, fencesBack: older.length })
  assert.deepEqual(older, [], 'fences never go back')
  await back()
  await cluster.untilWhole()
  await load.untilAnswered(ANSWERS, BOUND_MS)
  say(`${primary.name} is back, and follows`, { sinceMs: Math.round(performance.now() - sinceMs) })
}

/** The standbys stand still, so that the primary alone has what it acknowledges, and then it is gone. */
async function losing(cluster: PatroniCluster, load: ReturnType<typeof startLoad>, say: Say): Promise<void> {
  const primary = (await cluster.primary()) ?? assert.fail('there is no primary')
  const standbys = cluster.nodes.filter((node) => node !== primary)
  for (const standby of standbys) await standby.pause()
  // What is on its way to a standby that stands still would reach it later.
  const client = new Client({ connectionString: primary.url })
  await client.connect()
  await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_replication')
  await client.end()
  await sleep(BEHIND_MS)
  await primary.kill()
  for (const standby of standbys) standby.resume()
  say(`${primary.name} is killed, with writes that no standby has`, { acknowledged: load.book.acknowledged.size })
  await load.untilAnswered(ANSWERS, BOUND_MS)
  say(`${(await cluster.primary())?.name} answers`)
}

async function report(store: Store, say: Say): Promise<void> {
  for (const { name, verdict, found, advice } of await examine(store)) {
    if (verdict !== 'ok') say(`doctor: ${verdict} ${name}: ${found}. ${advice ?? ''}`)
  }
}
