import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { ris } from '../../../../service/imports/parse/test-files.ts'
import type { Answer, Cluster, TestServer } from '../../../support/service/cluster.ts'
import {
  ask,
  commandsIn,
  hookSecret,
  notification,
  type Seen,
  scandals,
} from '../../../support/service/imports/imports.ts'

export interface StormOptions {
  /** Every search has two files, so half as many as uploads. */
  readonly uploads: number
  /** A server is killed, and another one started in its place, after so many uploads. */
  readonly uploadsPerKill: number
  /** Moves the time so far after a kill, so that the test does not wait for the leases of killed processes. */
  readonly skipMs?: number
  readonly progress?: (line: string) => void
}

export interface StormFigures {
  readonly searches: number
  readonly uploads: number
  readonly notifications: number
  readonly kills: number
  /** Requests that were sent again because no server answered, or none could. */
  readonly retries: number
}

/** Clients at once. */
const LANES = 6
/** Longer than a lease of a relay, a lease of the local bus, and a redelivery take together, on a busy machine. */
const SETTLE_MS = 120_000
const files = ['a.ris', 'b.ris']
const PROJECT = 'storm'

/**
 * Clients upload, a storage sends one to four notifications of every file, in any order and to any server, and servers
 * are killed at random. Every import must be completed, with one command per file, and without an operator event.
 */
export async function runStorm(cluster: Cluster, options: StormOptions): Promise<StormFigures> {
  const searches = Math.ceil(options.uploads / files.length)
  const figures = { searches, uploads: 0, notifications: 0, kills: 0, retries: 0 }
  const watched = new Set<TestServer>(cluster.servers)
  const begun: string[] = []

  /** As a client does: tries another server until one answers. */
  async function insist(status: readonly number[], send: (server: TestServer) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      const { servers } = cluster
      const server = servers[chance(servers.length)]
      const answer = server === undefined ? null : await send(server).catch(() => null)
      if (answer !== null && status.includes(answer.status)) return answer
      if (answer !== null) assert.ok(answer.status >= 500 || answer.body.retryable === true, answer.text)
      figures.retries++
      await sleep(50 + Math.random() * 100)
    }
  }

  async function oneSearch(number: number): Promise<void> {
    const body = { projectId: PROJECT, searchName: `Search ${number}`, files }
    const key = `storm-${process.pid}-${number}`
    const started = await insist([201], (server) => server.post('/api/imports', body, { key }))
    const searchId = String(started.body['searchId'])
    begun.push(searchId)
    for (const name of shuffled(files)) {
      const path = `/api/imports/${searchId}/files/${name}`
      await insist([200, 201], (server) =>
        ask(server, 'PUT', path, ris(number), { authorization: `Bearer ${server.apiKey}` }),
      )
      figures.uploads++
      await notifyTimes(searchId, name, 1 + chance(2))
    }
    await Promise.all(shuffled(files).map((name) => notifyTimes(searchId, name, chance(3))))
  }

  async function notifyTimes(searchId: string, name: string, times: number): Promise<void> {
    const headers = { 'x-hook-secret': hookSecret, 'content-type': 'application/json' }
    const body = JSON.stringify(notification(searchId, name))
    await Promise.all(
      Array.from({ length: times }, () => insist([200], (server) => ask(server, 'POST', '/hooks/s3', body, headers))),
    )
    figures.notifications += times
  }

  const waiting = Array.from({ length: searches }, (_, number) => number).values()
  const clients = Promise.all(
    Array.from({ length: LANES }, async () => {
      for (const number of waiting) await oneSearch(number)
    }),
  ).then(() => true)
  const planned = Math.floor(options.uploads / options.uploadsPerKill)
  for (let over = false; !over; ) {
    over = await Promise.race([clients, sleep(100).then(() => false)])
    if (over || figures.kills >= planned || figures.uploads < (figures.kills + 1) * options.uploadsPerKill) continue
    const { servers } = cluster
    await servers[chance(servers.length)]?.kill()
    figures.kills++
    if (options.skipMs !== undefined) await cluster.advance(options.skipMs)
    watched.add(await cluster.add())
    options.progress?.(JSON.stringify(figures))
  }
  await settled(cluster, begun, options.progress)
  await judge(cluster, begun, [...watched])
  return figures
}

/** Until every import has ended. */
async function settled(
  cluster: Cluster,
  searchIds: readonly string[],
  progress: StormOptions['progress'],
): Promise<void> {
  let lastChange = performance.now()
  for (let before = -1; ; ) {
    const [row] = await cluster.sql<{ n: number }>(
      `select count(*) as n from import_jobs where project_id = '${PROJECT}' and state in ('Completed', 'Error')`,
    )
    const done = Number(row?.n)
    if (done >= searchIds.length) return
    if (done > before) lastChange = performance.now()
    if (performance.now() - lastChange > SETTLE_MS) throw new Error(`Only ${done} of ${searchIds.length} have ended`)
    if (done !== before) progress?.(`${done} of ${searchIds.length} have ended`)
    before = done
    await sleep(500)
  }
}

async function judge(cluster: Cluster, searchIds: readonly string[], servers: readonly TestServer[]): Promise<void> {
  const [server] = cluster.servers
  assert.ok(server)
  for (const searchId of searchIds) {
    const seen = (await server.get(`/api/imports/${searchId}`)).body as unknown as Seen
    const found = { state: seen.state, commands: commandsIn(seen), references: seen.references }
    assert.deepEqual(found, { state: 'Completed', commands: files.length, references: files.length }, searchId)
  }
  const [counts] = await cluster.sql(`select
    (select count(*) from import_jobs where project_id = '${PROJECT}') as jobs,
    (select count(*) from import_references r join import_jobs j on j.search_id = r.search_id
      where project_id = '${PROJECT}') as refs,
    (select count(*) from onceonly_inbox_dead_letters) as parked,
    (select count(*) from onceonly_outbox_dead) as dead`)
  const numbers = Object.fromEntries(Object.entries(counts ?? {}).map(([name, n]) => [name, Number(n)]))
  assert.deepEqual(numbers, { jobs: searchIds.length, refs: searchIds.length * files.length, parked: 0, dead: 0 })
  assert.deepEqual(scandals(servers), [])
}

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
