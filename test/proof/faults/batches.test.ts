import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLedger, isOnceError, MINUTE } from 'onceonly'
import { Client } from 'pg'
import type { ClaimRequest, Request } from '../../../src/ledger/core/request.ts'
import { createRequests } from '../../../src/ledger/requests.ts'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { until } from '../../../src/testing/until.ts'
import { flushesOf } from '../../support/flushes.ts'
import type { CrashStore } from '../../support/place.ts'
import { onEveryPlace, onPlace, sqlOf, who } from '../../support/place.ts'
import type { BatchReport, BatchTask } from './batch-worker.ts'
import { claimOf, settleOf } from './requests.ts'

/** How large the batches of the store are. */
function measured(store: CrashStore): { claims: CrashStore['claims']; largest(): number } {
  let largest = 0
  flushesOf(store, (requests) => void (largest = Math.max(largest, requests.length)))
  return { largest: () => largest, claims: store.claims }
}

const poison: Record<string, (request: ClaimRequest) => ClaimRequest> = {
  'a NUL character': (request) => ({ ...request, identity: { ...request.identity, key: 'with \u0000 inside' } }),
  'half a surrogate pair': (request) => ({ ...request, identity: { ...request.identity, caller: 'half \ud800' } }),
  'a time that is no number': (request) => ({ ...request, leaseMs: Number.NaN }),
}

onEveryPlace('a row that cannot be stored fails alone, the others of its batch do not notice', async (place) => {
  const runtime = createRuntime()
  const { claims, largest } = measured(place.store)
  const { apply } = createRequests(claims, runtime)
  for (const [what, spoil] of Object.entries(poison)) {
    const keys = Array.from({ length: 20 }, (_, n) => `${what} ${n}`)
    const requests = keys.map((key, n) =>
      n === 13 ? spoil(claimOf(key, runtime.newId())) : claimOf(key, runtime.newId()),
    )
    const ends = await Promise.allSettled(requests.map(async (request) => apply(request)))
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
  const { apply } = createRequests(claims, runtime)
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
  const ends = await Promise.allSettled(mixed.map(async (request) => apply(request)))
  assert.deepEqual(
    ends.flatMap((end, n) => (end.status === 'rejected' ? [n] : [])),
    [5],
  )
  assert.equal(largest(), 12)
  // Its attempt is not lost: it may still settle with another outcome.
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
  // The server counts a moment later, which gives a count that must not come its chance. A circle that it broke was no fault above: the batch was repeated.
  await sleep(1_500)
  const [row] = await sqlOf(place.store).query<{ deadlocks: unknown }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  assert.equal(Number(row?.deadlocks), 0)
})

/** Unrelated commands that must end while a row is held, and tries for that row meanwhile. */
const UNRELATED = 100
const TRIES = 6

/** How often a held row was tried, and how often others had to share its batch. */
function sharing(store: CrashStore, isHeld: (request: Request) => boolean) {
  const seen = { tries: 0, shared: 0 }
  flushesOf(store, (requests) => {
    const held = requests.filter(isHeld).length
    if (held > 0) seen.tries += 1
    if (held > 0 && held < requests.length) seen.shared += 1
  })
  return { seen, store }
}

/** Unrelated commands, a few at a time, for as long as the row is held: until enough of both was seen. */
async function unrelated(run: (key: string) => Promise<unknown>, seen: { readonly tries: number }): Promise<void> {
  let [begun, ended, over] = [0, 0, false]
  const clients = Array.from({ length: 8 }, async () => {
    while (!over) {
      await run(`unrelated ${++begun}`)
      ended += 1
    }
  })
  try {
    await until(
      `${UNRELATED} unrelated commands ended, and the held row was tried ${TRIES} times`,
      () => ({ ended, tries: seen.tries }),
      (now) => now.ended >= UNRELATED && now.tries >= TRIES,
    )
  } finally {
    over = true
  }
  await Promise.all(clients)
}

onPlace('postgres', 'a value that an open transaction has claimed blocks no claim of another value', async (place) => {
  const owner = createLedger({ store: place.store, background: false })
  const { seen, store } = sharing(place.another(), ({ kind }) => kind === 'unique')
  const once = createLedger({ store, background: false })
  const [inside, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const operation = once.operation({ name: 'op', effect: 'external' })
  const holding = owner
    .operation({ name: 'holds', effect: 'transaction' })
    .run(who('holder'), 1, async ({ unique }) => {
      assert.equal((await unique('reference', 'R')).kind, 'claimed')
      inside.resolve()
      await letGo.promise
    })
  await inside.promise
  // The same value, by group commit: it shares its batches with all other claims.
  const rivals = [1, 2, 3]
  const wanted = Promise.all(rivals.map((n) => once.unique('acme', 'reference', 'R', { owner: `rival ${n}` })))
  await unrelated((key) => operation.run(who(key), 1, () => key), seen)
  // Each rival may find out together with others that its row is held; after that only rivals wait with it.
  assert.ok(seen.shared <= rivals.length, `${seen.shared} of ${seen.tries} tries made others wait`)
  letGo.resolve()
  await holding
  for (const { kind } of await wanted) assert.equal(kind, 'taken')
  for (const ledger of [owner, once]) await ledger.stop()
})

onPlace('postgres', 'a record that another transaction has locked blocks only its own attempt', async (place) => {
  assert.ok(place.address.kind === 'postgres')
  const isHeld = (request: Request) => request.kind === 'settle' && request.grant.identity.key === 'held'
  const { seen, store } = sharing(place.store, isHeld)
  const once = createLedger({ store, background: false })
  const operation = once.operation({ name: 'op', effect: 'external', leaseMs: MINUTE })
  const client = new Client({ connectionString: place.address.url })
  await client.connect()
  const locked = Promise.withResolvers<void>()
  const held = operation.run(who('held'), 1, async () => {
    await client.query('begin')
    await client.query("select 1 from onceonly_records where key = 'held' for update")
    locked.resolve()
    return 'settled late'
  })
  await locked.promise
  await unrelated((key) => operation.run(who(key), 1, () => key), seen)
  assert.ok(seen.shared <= 1, `${seen.shared} of ${seen.tries} tries made others wait`)
  await client.query('commit')
  assert.equal(await held, 'settled late')
  await once.stop()
  assert.equal((await place.store.queries.count({}, { timeoutMs: 60_000 })).in_progress, 0)
  await client.end()
})
