import assert from 'node:assert/strict'
import { DAY, type SqlTx } from 'onceonly'
import { until } from '../../../../src/testing/until.ts'
import type { Replica } from '../../../support/events/saga/stage.ts'
import { cancelled, createReplica, createSent, handled, saved, started } from '../../../support/events/saga/stage.ts'
import type { CrashStore, Place } from '../../../support/place.ts'
import { onPlace, sqlOf } from '../../../support/place.ts'

/** SQLite has one writer at a time, so that nothing can come between two statements of a transaction there. */
const onPostgres = (title: string, body: (place: Place, replicas: Opened) => Promise<void>) =>
  onPlace('postgres', title, async (place) => {
    await createSent(place.store)
    const replicas: Replica[] = []
    const open: Opened = (at = null) => {
      const replica = createReplica(at === null ? place.another() : withHook(place.another(), at))
      replicas.push(replica)
      return replica
    }
    try {
      await body(place, open)
    } finally {
      for (const replica of replicas) await replica.stop()
    }
  })

/** A replica; with a hook, one that is stopped at the entry for an ignored event. */
type Opened = (hook?: Hook | null) => Replica

interface Hook {
  before?(): Promise<void>
  after?(): Promise<void>
}

/** Where an event that is ignored writes its line into the history, under a lock that keeps the sweep away. */
const ENTRY = 'INSERT INTO onceonly_saga_history'

function withHook(store: CrashStore, hook: Hook): CrashStore {
  const hooked = (tx: SqlTx): SqlTx =>
    Object.assign(Object.create(tx) as SqlTx, {
      async query(text: string, values?: never) {
        if (!text.startsWith(ENTRY)) return await tx.query(text, values)
        await hook.before?.()
        const rows = await tx.query(text, values)
        await hook.after?.()
        return rows
      },
    })
  const run: CrashStore['transactions']['run'] = (work, call) =>
    store.transactions.run((ground) => work({ ...ground, tx: hooked(ground.tx) }), call)
  return { ...store, transactions: { ...store.transactions, run } }
}

async function finished(place: Place, replica: Replica): Promise<void> {
  await handled(replica, started('s1'), cancelled('s1'))
  await place.advance(8 * DAY)
}

const rowsOf = (place: Place, table: string) => sqlOf(place.store).query(`select 1 from ${table} where id = 's1'`)

onPostgres('a tombstone that is swept under an event is looked for again, and leaves nothing', async (place, open) => {
  const sweeper = open()
  let swept = 0
  const late = open({
    async before() {
      swept += await sweeper.saga.upkeep.sweep()
    },
  })
  await finished(place, sweeper)
  // It had found the tombstone, which is then removed; on fresh state there is only the claim on the id.
  await handled(late, saved('s1', ['a']))
  assert.equal(swept, 1)
  assert.deepEqual(
    late.events.map((event) => (event.kind === 'ignored' ? event.why : event.kind)),
    ['conflict', 'late_after_ttl'],
  )
  assert.deepEqual(await rowsOf(place, 'onceonly_saga_instances'), [])
  assert.deepEqual(await rowsOf(place, 'onceonly_saga_history'), [], 'no line without its instance')
})

onPostgres('a sweep waits for an event that is being ignored, and takes its line along', async (place, open) => {
  const sweeper = open()
  let sweeping: Promise<number> = Promise.resolve(0)
  const late = open({
    async after() {
      sweeping = sweeper.saga.upkeep.sweep()
      await untilBlocked(place)
    },
  })
  await finished(place, sweeper)
  await handled(late, saved('s1', ['a']))
  assert.equal(await sweeping, 1)
  assert.deepEqual(
    late.events.map((event) => (event.kind === 'ignored' ? event.why : event.kind)),
    ['terminal'],
  )
  assert.deepEqual(await rowsOf(place, 'onceonly_saga_instances'), [])
  assert.deepEqual(await rowsOf(place, 'onceonly_saga_history'), [])
})

/** For a row that another transaction holds. */
async function untilBlocked(place: Place): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await until('the sweep waits for a row', async () => (await sqlOf(place.store).query(waiting)).length > 0)
}
