import assert from 'node:assert/strict'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { Client } from 'pg'
import type { Address, PlaceKind } from '../test/support/place.ts'
import { createPlace, placeKinds } from '../test/support/place.ts'
import { startServers } from '../tools/servers/index.ts'
import type { LoadReport, LoadTask } from './retention/load.ts'

/**
 * `npm run lab -- retention`: new keys at the highest rate that the machine reaches, with a short retention. The sweep
 * keeps up: what is on the disk stays below what is written in three times the retention.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    'retain-seconds': { type: 'string', default: '60' },
    callers: { type: 'string', default: '512' },
    /** Ledgers that share the store, each in a thread of its own. */
    processes: { type: 'string', default: '1' },
    'report-seconds': { type: 'string', default: '10' },
    /** `sqlite` or `postgres`; both, when left out. */
    on: { type: 'string' },
  },
})

const WORTH = 3
const MIB = 1_024 * 1_024

const kinds = placeKinds.filter((kind) => values.on === undefined || values.on === kind)
if (kinds.length === 0) throw new Error(`--on is one of ${placeKinds.join(', ')}`)
const retainMs = Number(values['retain-seconds']) * 1_000
const runMs = Number(values.minutes) * 60_000
const reportMs = Number(values['report-seconds']) * 1_000

const servers = await startServers(kinds.includes('postgres') ? ['postgres'] : [])
Object.assign(process.env, servers.env)
try {
  for (const kind of kinds) await keepUp(kind)
} finally {
  await servers.stop()
}

interface Sample {
  readonly atMs: number
  /** Requests since the beginning. */
  readonly requests: number
  readonly rows: number
}

async function keepUp(kind: PlaceKind): Promise<void> {
  const place = await createPlace(kind)
  const disk = await openDisk(place.address)
  const workers = Array.from({ length: Number(values.processes) }, (_, n) => {
    const task: LoadTask = { address: place.address, name: `p${n}`, callers: Number(values.callers), retainMs }
    return new Worker(new URL('retention/load.ts', import.meta.url), { workerData: task })
  })
  const startedMs = performance.now()
  const samples: Sample[] = [{ atMs: 0, requests: 0, rows: 0 }]
  const p99s: number[] = []
  let [removed, sweptMs] = [0, 0]
  try {
    while (performance.now() < startedMs + runMs) {
      await pause(reportMs)
      const reports = await Promise.all(workers.map(report))
      const atMs = performance.now() - startedMs
      const last = samples.at(-1) as Sample
      const sum = (of: (one: LoadReport) => number) => reports.reduce((total, one) => total + of(one), 0)
      const requests = last.requests + sum((one) => one.requests)
      const { rows, ...sizes } = await disk.look()
      samples.push({ atMs, requests, rows })
      p99s.push(Math.max(...reports.map((one) => one.p99Ms)))
      removed += sum((one) => one.removed)
      sweptMs += sum((one) => one.sweptMs)
      const bound = writtenWithin(samples, WORTH * retainMs)
      const share = sum((one) => one.sweptMs) / (atMs - last.atMs) / workers.length
      const rate = (requests - last.requests) / ((atMs - last.atMs) / 1_000)
      console.log(
        `${kind}, ${(atMs / 1_000).toFixed(0)} s: ${rate.toFixed(0)} requests/s, p99 ${p99s.at(-1)?.toFixed(0)} ms; ` +
          `${rows} records, ${removed} removed, ${(100 * share).toFixed(1)} % of the time; ${JSON.stringify(sizes)}`,
      )
      const failures = reports.flatMap((one) => one.failures)
      assert.deepEqual(failures, [], 'nothing fails')
      if (atMs > WORTH * retainMs) assert.ok(rows <= bound, `${rows} records; three times the retention is ${bound}`)
    }
    const { requests, atMs } = samples.at(-1) as Sample
    const most = Math.max(...samples.map(({ rows }) => rows))
    const perSecond = requests / (atMs / 1_000)
    const p99Ms = p99s.toSorted((a, b) => a - b)[p99s.length >> 1] ?? 0
    console.log(
      `${kind}: ${perSecond.toFixed(0)} requests/s, p99 ${p99Ms.toFixed(0)} ms (median of ${p99s.length} intervals); ` +
        `at most ${most} records, the worth of ${(most / perSecond).toFixed(0)} s; ` +
        `${((100 * sweptMs) / atMs / workers.length).toFixed(1)} % of the time spent sweeping`,
    )
  } finally {
    await Promise.all(workers.map(stop))
    await disk.close()
    await place.end()
  }
}

function writtenWithin(samples: readonly Sample[], withinMs: number): number {
  const last = samples.at(-1) as Sample
  const before = samples.findLast(({ atMs }) => atMs <= last.atMs - withinMs)
  return last.requests - (before?.requests ?? 0)
}

async function report(worker: Worker): Promise<LoadReport> {
  worker.postMessage('report')
  const [report] = (await once(worker, 'message')) as [LoadReport]
  return report
}

async function stop(worker: Worker): Promise<void> {
  const ended = once(worker, 'exit')
  worker.postMessage('stop')
  await ended
}

/** Looks at what is there with a connection of its own. */
interface Disk {
  look(): Promise<{ readonly rows: number } & Readonly<Record<string, number>>>
  close(): Promise<void>
}

async function openDisk(address: Address): Promise<Disk> {
  if (address.kind === 'sqlite') {
    const db = new DatabaseSync(address.path, { readOnly: true })
    const rows = db.prepare('SELECT count(*) AS rows FROM onceonly_records')
    const ids = db.prepare('SELECT count(*) AS ids FROM onceonly_ids')
    const free = db.prepare('PRAGMA freelist_count')
    return {
      look: async () => ({
        rows: Number(rows.get()?.['rows']),
        ids: Number(ids.get()?.['ids']),
        fileMib: Math.round(statSync(address.path).size / MIB),
        logMib: Math.round(statSync(`${address.path}-wal`).size / MIB),
        freePages: Number(free.get()?.['freelist_count']),
      }),
      close: async () => db.close(),
    }
  }
  const client = new Client({ connectionString: address.url })
  await client.connect()
  return {
    look: async () => {
      const { rows } = await client.query<Record<string, string>>(
        `SELECT (SELECT count(*) FROM onceonly_records) AS rows, n_dead_tup AS dead, autovacuum_count AS vacuums,
           pg_relation_size(relid) / ${MIB} AS heap_mib, pg_indexes_size(relid) / ${MIB} AS index_mib
         FROM pg_stat_user_tables WHERE relname = 'onceonly_records'`,
      )
      const figures = Object.fromEntries(Object.entries(rows[0] ?? {}).map(([name, value]) => [name, Number(value)]))
      return { rows: Number(rows[0]?.['rows']), ...figures }
    },
    close: () => client.end(),
  }
}
