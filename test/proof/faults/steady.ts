import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ledger, SqlTx } from 'onceonly'
import { isOnceError } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import type { Place } from '../../support/place.ts'
import { who } from '../../support/place.ts'

/** Clients that insist, in one process that lives through whatever happens to its store. */
export interface SteadyOptions {
  readonly once: Ledger<SqlTx>
  /** Direct access, to check what happened. */
  readonly place: Place
  readonly durationMs: number
  /** What must have happened, however long it takes. */
  readonly enough: (ended: number) => boolean
  /** What happens to the store meanwhile, again and again. */
  readonly disturb: () => Promise<void>
}

const CLIENTS = 6

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

/** Every command must have had one effect in the end, and the ledger must know of each how it ended. */
export async function steadyUnder(options: SteadyOptions): Promise<number> {
  const { once, place, disturb, enough } = options
  const transactional = once.operation({ name: 'tx', effect: 'transaction' })
  const external = once.operation({ name: 'ext', effect: 'external' })
  const effects = new Map<string, number>()
  const endsMs = performance.now() + options.durationMs
  let [commands, ended] = [0, 0]
  const goesOn = () => performance.now() < endsMs || !enough(ended)

  async function client(): Promise<void> {
    while (goesOn()) {
      const key = `k${++commands}`
      const inTransaction = insist(() =>
        transactional.run(who(key), key, async ({ tx }) => {
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
      ended += 1
    }
  }

  async function trouble(): Promise<void> {
    while (goesOn()) {
      const before = ended
      await disturb()
      // On a machine on which a command takes longer than the peace between two troubles, none would ever end.
      await until('a command ends between two troubles', () => ended > before || !goesOn())
    }
  }

  await Promise.all([trouble(), ...Array.from({ length: CLIENTS }, client)])
  await once.stop()
  const rows = await place.business()
  assert.equal(rows.length, commands)
  assert.equal(new Set(rows.map(({ key }) => key)).size, commands)
  for (const [key, count] of effects) assert.equal(count, 1, `${key}: ${count} effects`)
  assert.equal(effects.size, commands)
  // The process lived on, so it knows of every effect how it ended, and said so.
  const counts = await place.store.queries.count({}, { timeoutMs: 60_000 })
  const none = { in_progress: 0, failed_terminal: 0, failed_retryable: 0, unknown: 0 }
  assert.deepEqual(counts, { ...none, succeeded: 2 * commands })
  return commands
}
