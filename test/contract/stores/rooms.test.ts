import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import { onEveryPlace, sqlOf, sqlStore } from '../../support/place.ts'

const CALL = { timeoutMs: 60_000 }
const TRANSACTION = { ...CALL, lockMs: 60_000, refuseTwinOf: null }

onEveryPlace("rooms read the store's time inside their statements", async (place) => {
  const { store } = place
  const sql = sqlOf(store)
  const ask = async () => {
    const [row] = await sql.query<{ now: unknown }>(`SELECT ${sql.now} AS now`)
    return Number(row?.now)
  }
  const [before, read, after] = [await store.clock.now(CALL), await ask(), await store.clock.now(CALL)]
  assert.ok(before <= read && read <= after, `${before} ${read} ${after}`)
  assert.ok(Number.isSafeInteger(read))
  await place.advance(3_600_000)
  assert.ok((await ask()) >= read + 3_600_000)
  const inside = await store.transactions.run(async ({ tx }) => {
    const [row] = await tx.query<{ now: unknown }>(`SELECT ${sql.now} AS now`)
    return Number(row?.now)
  }, TRANSACTION)
  assert.ok(inside >= read + 3_600_000)
})

onEveryPlace(
  'a listener of a room is notified of a commit, in this process and from another, and not of a rollback',
  async (place) => {
    const mine = sqlStore(place.store)
    // A process that only listens: on SQLite it hears of others by their commits, and of its own by their topics.
    const listening = sqlStore(place.another())
    const other = sqlStore(place.another())
    for (const [near, far] of [
      [mine, mine],
      [listening, other],
    ] as const) {
      const fromAfar = near !== far && place.address.kind === 'sqlite'
      let wakes = 0
      const watch = near.sql.listen('proof', (cause) => {
        if (cause === 'topic' || fromAfar) wakes += 1
      })
      await watch.ready
      // On SQLite the first look, and whatever the other store did to open the file, may wake for nothing.
      await until('there are no more wakes for nothing', async () => {
        const before = wakes
        await new Promise((resolve) => void setTimeout(resolve, 60))
        return wakes === before
      })
      const before = wakes
      const wake = (fail: boolean) =>
        far.transactions.run(async ({ tx }) => {
          await tx.query("insert into business values (1, 'a', 'b')")
          await tx.query(`SELECT ${far.sql.wake('proof')}`)
          if (fail) throw new Error('undone')
        }, TRANSACTION)
      await assert.rejects(wake(true), /undone/)
      // A chance for a wake that must not come.
      await new Promise((resolve) => void setTimeout(resolve, 60))
      assert.equal(wakes, before)
      await wake(false)
      await until('the commit wakes', () => wakes > before)
      watch.stop()
    }
  },
)

onEveryPlace('a listener hears of any change of the store, by whichever process, without a topic', async (place) => {
  const mine = sqlStore(place.store)
  const other = sqlStore(place.another())
  let changes = 0
  const watch = mine.sql.listen('proof', (cause) => {
    if (cause === 'change') changes += 1
  })
  await watch.ready
  for (const store of [mine, other]) {
    const before = changes
    await store.sql.query("insert into business values (1, 'a', 'b')")
    await until('the commit is heard', () => changes > before)
  }
  watch.stop()
  // What was not due a moment ago may be.
  let heard = 0
  const clock = mine.sql.listen('proof', () => (heard += 1))
  await clock.ready
  const before = heard
  await place.advance(1_000)
  await until('the clock is heard', () => heard > before)
  clock.stop()
})

onEveryPlace('a topic is a constant, so that nothing slips into the SQL', async ({ store }) => {
  const sql = sqlOf(store)
  for (const topic of ['', "a'b", 'A', 'x y']) {
    assert.throws(
      () => sql.wake(topic),
      (error) => isOnceError(error, 'bad_option'),
    )
    assert.throws(
      () => sql.listen(topic, () => {}),
      (error) => isOnceError(error, 'bad_option'),
    )
  }
})
