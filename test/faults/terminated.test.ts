import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLedger, isOnceError, SECOND } from 'onceonly'
import type { Place } from '../crash/place.ts'
import { onPlace, openStore, sqlOf, who } from '../crash/place.ts'

const LOAD_MS = 4 * SECOND
const CLIENTS = 6
const NAME = 'to-be-terminated'

/** As by a failover: the server ends every session of the application at once. Answers how many. */
async function terminate(place: Place): Promise<number> {
  const ended = await sqlOf(place.store).query(
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name = ?',
    [NAME],
  )
  return ended.length
}

/** As a client does it: whatever may be tried again is tried again, with the same key. */
async function insist<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      assert.ok(isOnceError(error) && error.retryable, String(error))
      assert.ok(tries < 500, 'never done')
      await sleep(error.retryAfterMs ?? 20)
    }
  }
}

onPlace(
  'postgres',
  'sessions that the server ends again and again under load: one effect for every command',
  async (place) => {
    const { store, close } = openStore(place.address, NAME)
    const once = createLedger({ store, background: false })
    const transactional = once.operation({ name: 'tx', effect: 'transaction' })
    const external = once.operation({ name: 'ext', effect: 'external' })
    const effects = new Map<string, number>()
    const endsMs = performance.now() + LOAD_MS
    const goesOn = () => performance.now() < endsMs
    let commands = 0
    let terminated = 0

    async function client(): Promise<void> {
      while (goesOn()) {
        const key = `k${++commands}`
        const inTransaction = insist(() =>
          transactional.transact(who(key), key, async ({ tx }) => {
            await tx.query('insert into business (key, value) values (?, ?)', [key, key])
            return key
          }),
        )
        const outside = insist(() =>
          external.run(who(key), key, () => {
            effects.set(key, (effects.get(key) ?? 0) + 1)
            return key
          }),
        )
        assert.deepEqual(await Promise.all([inTransaction, outside]), [key, key])
      }
    }

    async function failovers(): Promise<void> {
      while (goesOn()) {
        await sleep(60)
        terminated += await terminate(place)
      }
    }

    await Promise.all([failovers(), ...Array.from({ length: CLIENTS }, client)])
    await once.stop()
    console.log(`${commands} commands of each kind, ${terminated} sessions terminated`)
    assert.ok(terminated > 20 && commands > 20)
    const rows = await place.business()
    assert.equal(rows.length, commands)
    assert.equal(new Set(rows.map(({ key }) => key)).size, commands)
    for (const [key, count] of effects) assert.equal(count, 1, `${key}: ${count} effects`)
    // The process lived on, so it knows of every effect how it ended, and said so.
    const counts = await place.store.queries.count({}, { timeoutMs: 5_000 })
    assert.deepEqual(counts, {
      in_progress: 0,
      succeeded: 2 * commands,
      failed_terminal: 0,
      failed_retryable: 0,
      unknown: 0,
    })
    await close()
  },
)
