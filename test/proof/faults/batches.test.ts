import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLedger, isOnceError, limits, SECOND } from 'onceonly'
import { Client } from 'pg'
import { createBatcher } from '../../../src/ledger/batch.ts'
import type { ClaimRequest, Request } from '../../../src/ledger/core/request.ts'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import type { CrashStore } from '../../support/place.ts'
import { onEveryPlace, onPlace, sqlOf, who } from '../../support/place.ts'
import type { BatchReport, BatchTask } from './batch-worker.ts'
import { claimOf, settleOf } from './requests.ts'

/** The same store, which tells how large its batches were. */
function measured(store: CrashStore): { claims: CrashStore['claims']; largest(): number } {
  let largest = 0
  return {
    largest: () => largest,
    claims: {
      ...store.claims,
      apply(requests, call) {
        largest = Math.max(largest, requests.length)
        return store.claims.apply(requests, call)
      },
    },
  }
}

const poison: Record<string, (request: ClaimRequest) => ClaimRequest> = {
  'a NUL character': (request) => ({ ...request, identity: { ...request.identity, key: 'with \u0000 inside' } }),
  'half a surrogate pair': (request) => ({ ...request, identity: { ...request.identity, caller: 'half \ud800' } }),
  'a time that is no number': (request) => ({ ...request, leaseMs: Number.NaN }),
}

onEveryPlace('a row that cannot be stored fails alone, the others of its batch do not notice', async (place) => {
  const runtime = createRuntime()
  const { claims, largest } = measured(place.store)
  const { apply } = createBatcher(claims, runtime)
  for (const [what, spoil] of Object.entries(poison)) {
    const keys = Array.from({ length: 20 }, (_, n) => `${what} ${n}`)
    const requests = keys.map((key, n) =>
      n === 13 ? spoil(claimOf(key, runtime.newId())) : claimOf(key, runtime.newId()),
    )
    const ends = await Promise.allSettled(requests.map((request) => apply(request)))
    for (const [n, end] of ends.entries()) {
      if (n === 13)
        assert.ok(end.status === 'rejected' && isOnceError(end.reason, 'row_refused'), `${what}: ${end.status}`)
      else assert.ok(end.status === 'fulfilled' && end.value.decision.kind === 'first_attempt', `${what}: row ${n}`)
    }
  }
  assert.equal(largest(), 20, 'they shared one batch')
})

onEveryPlace('an outcome that cannot be stored fails alone, among settles, heartbeats and claims', async (place) => {
  const runtime = createRuntime()
  const { claims, largest } = measured(place.store)
  const { apply } = createBatcher(claims, runtime)
  const grants = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const { decision } = await apply(claimOf(`settle ${n}`, runtime.newId()))
      assert.ok(decision.kind === 'first_attempt')
      return decision.lease
    }),
  )
  const mixed = grants.map((grant, n): Request => {
    const { id, claimId, fence } = grant
    if (n === 5) return settleOf(grant, '"a raw \u0000"')
    if (n % 3 === 0) return { kind: 'renew', id, claimId, fence, leaseMs: 30_000 }
    return n % 3 === 1 ? settleOf(grant, '"fine"') : claimOf(`other ${n}`, runtime.newId())
  })
  const ends = await Promise.allSettled(mixed.map((request) => apply(request)))
  assert.deepEqual(
    ends.flatMap((end, n) => (end.status === 'rejected' ? [n] : [])),
    [5],
  )
  assert.equal(largest(), 12)
  // Its attempt is not lost: it may still tell, in other words, how it ended.
  const { decision } = await apply(settleOf(grants[5] as (typeof grants)[0], '"other words"'))
  assert.equal(decision.kind, 'applied')
})

onEveryPlace('processes that batch the same records in opposite orders never wait in a circle', async (place) => {
  if (place.address.kind === 'postgres') {
    const database = new URL(place.address.url).pathname.slice(1)
    // Sooner than a batch gives up a row by itself, so that the server finds, and counts, every circle.
    await sqlOf(place.store).query(`alter database ${database} set deadlock_timeout = '10ms'`)
  }
  const start = (backwards: boolean) => {
    const task: BatchTask = { address: place.address, keys: 120, rounds: 12, backwards }
    return place.crew.start({ file: import.meta.resolve('./batch-worker.ts'), task })
  }
  const children = [start(false), start(true)]
  for (const child of children) await child.heard('ready')
  for (const child of children) child.order('go')
  const reports = await Promise.all(children.map((child) => child.heard<BatchReport>('report')))
  assert.deepEqual(
    reports.flatMap(({ faults }) => faults),
    [],
  )
  const granted = reports.map((report) => report.granted)
  assert.ok(granted[0] !== 0 || granted[1] !== 0, `${granted}`)
  if (place.address.kind !== 'postgres') return
  // The server counts a moment later. A circle that it broke was no fault above: the batch was repeated.
  await sleep(1_500)
  const [row] = await sqlOf(place.store).query<{ deadlocks: unknown }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  assert.equal(Number(row?.deadlocks), 0)
})

const HELD_MS = 3 * SECOND
/** Who waited for the one that holds would wait for all of its time. */
const SOON_MS = 2 * SECOND

/** Unrelated commands, a few at a time, until told to stop. Answers how long the slowest took. */
async function unrelated(
  run: (key: string) => Promise<unknown>,
  over: () => boolean,
): Promise<{ slowestMs: number; count: number }> {
  let slowestMs = 0
  let count = 0
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (!over()) {
        const startedMs = performance.now()
        await run(`unrelated ${++count}`)
        slowestMs = Math.max(slowestMs, performance.now() - startedMs)
      }
    }),
  )
  return { slowestMs, count }
}

onPlace('postgres', 'a value that an open transaction has claimed stops nobody who wants another', async (place) => {
  const owner = createLedger({ store: place.store, background: false })
  const once = createLedger({ store: place.another(), background: false })
  const inside = Promise.withResolvers<void>()
  const operation = once.operation({ name: 'op', effect: 'external' })
  let over = false
  const holding = owner
    .operation({ name: 'holds', effect: 'transaction' })
    .transact(who('holder'), 1, async ({ unique }) => {
      assert.equal((await unique('reference', 'R')).kind, 'claimed')
      inside.resolve()
      await sleep(HELD_MS)
      over = true
    })
  await inside.promise
  // The same value, by group commit: it shares its batches with everybody else's claims.
  const wanted = Promise.all([1, 2, 3].map((n) => once.unique('acme', 'reference', 'R', { owner: `rival ${n}` })))
  const { slowestMs, count } = await unrelated(
    (key) => operation.run(who(key), 1, () => key),
    () => over,
  )
  console.log(`${count} unrelated commands, the slowest took ${Math.round(slowestMs)} ms`)
  assert.ok(slowestMs < SOON_MS, `${slowestMs} ms`)
  // When every batch waited with the held row it was some fifty.
  assert.ok(count > 100, `only ${count} unrelated commands`)
  await holding
  for (const { kind } of await wanted) assert.equal(kind, 'taken')
  for (const ledger of [owner, once]) await ledger.stop()
})

onPlace('postgres', 'a record that somebody’s transaction has locked stops only its own attempt', async (place) => {
  assert.ok(place.address.kind === 'postgres')
  const once = createLedger({ store: place.store, background: false })
  const operation = once.operation({ name: 'op', effect: 'external', leaseMs: limits.leaseMinMs * 20 })
  const client = new Client({ connectionString: place.address.url })
  await client.connect()
  let over = false
  const locked = Promise.withResolvers<void>()
  const held = operation.run(who('held'), 1, async () => {
    await client.query('begin')
    await client.query("select 1 from onceonly_records where key = 'held' for update")
    locked.resolve()
    setTimeout(() => {
      over = true
      void client.query('commit')
    }, HELD_MS)
    return 'settled late'
  })
  await locked.promise
  const { slowestMs, count } = await unrelated(
    (key) => operation.run(who(key), 1, () => key),
    () => over,
  )
  console.log(`${count} unrelated commands, the slowest took ${Math.round(slowestMs)} ms`)
  assert.ok(slowestMs < SOON_MS, `${slowestMs} ms`)
  assert.equal(await held, 'settled late')
  await once.stop()
  assert.equal((await place.store.queries.count({}, { timeoutMs: 5_000 })).in_progress, 0)
  await client.end()
})
