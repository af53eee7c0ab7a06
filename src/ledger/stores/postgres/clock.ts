import { checkAdvance } from '../../store/advance.ts'
import type { StoreClock } from '../../store/port.ts'
import { inTransaction } from '../../store/sql/connection.ts'
import { clockOffsetFunction, nowSql } from './clock-sql.ts'
import type { Core } from './core.ts'

export function createClock(core: Core, testClock: boolean, wakeAll: string): StoreClock {
  const { names } = core
  return {
    now: (call) =>
      core.read(call, async ({ rows }) => {
        const [row] = await rows(`SELECT ${nowSql(names)} AS now`)
        return Number(row?.['now'])
      }),
    advance: async (ms, call) => {
      checkAdvance(ms, testClock)
      await core.write(call, async ({ connection, rows }) => {
        // One at a time: each adds to what the last one left.
        await inTransaction(connection, `BEGIN; SELECT pg_advisory_xact_lock(${names.migrationLock})`, async () => {
          const [row] = await rows(`SELECT ${names.clockOffset} AS offset_ms`)
          await connection.script(clockOffsetFunction(names, Number(row?.['offset_ms']) + ms))
          await connection.script(`SELECT ${wakeAll}`)
        })
      })
    },
  }
}
