import { OnceError } from '../../core/errors.ts'
import type { StoreClock } from '../../store/port.ts'
import type { Core } from './core.ts'
import type { Names } from './names.ts'

/**
 * The store's time in milliseconds: `clock_timestamp()`, because `now()` stands still inside a transaction, plus the
 * offset that tests keep in the store, so that every process on it sees the same time. Volatile: a statement about many
 * rows reads it in a materialised CTE, once.
 */
export function nowSql(names: Names): string {
  // The row may be missing where somebody truncates all tables between tests.
  const offset = `coalesce((SELECT offset_ms FROM ${names.meta} WHERE id = 1), 0)`
  return `(floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + ${offset})`
}

export function createClock(core: Core, testClock: boolean): StoreClock {
  const { names } = core
  return {
    now: (call) =>
      core.read(call, async ({ rows }) => {
        const [row] = await rows(`SELECT ${nowSql(names)} AS now`)
        return Number(row?.['now'])
      }),
    advance: async (ms, call) => {
      if (!testClock) {
        const how = 'with `testClock: true` or ONCEONLY_TEST_CLOCK=1'
        throw new OnceError('bad_option', `Only a store opened ${how} can move its time.`)
      }
      if (!Number.isSafeInteger(ms) || ms < 0) throw new OnceError('bad_option', 'Time moves forward, by whole ms.')
      await core.write(call, async ({ rows }) => {
        await rows(
          `INSERT INTO ${names.meta} AS m (id, offset_ms) VALUES (1, $1)
           ON CONFLICT (id) DO UPDATE SET offset_ms = m.offset_ms + excluded.offset_ms`,
          [ms],
        )
      })
    },
  }
}
