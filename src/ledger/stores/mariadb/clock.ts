import { checkAdvance } from '../../store/advance.ts'
import type { StoreClock } from '../../store/port.ts'
import type { Calls } from '../../store/sql/calls.ts'
import { NOW } from './clock-sql.ts'
import type { Connection } from './connection.ts'

export function createClock(calls: Calls<Connection>, testClock: boolean): StoreClock {
  return {
    now: (call) =>
      calls.read(call, async (connection) => {
        const [row] = await connection.query(`SELECT ${NOW} AS now`)
        return Number(row?.['now'])
      }),
    advance: async (ms, call) => {
      checkAdvance(ms, testClock)
      await calls.write(call, (connection) =>
        connection.query('UPDATE onceonly_meta SET offset_ms = offset_ms + ?', [ms]),
      )
    },
  }
}
