import type { ReadRecords } from '../../store/sql/decide.ts'
import { columnsOf, recordOf } from '../../store/sql/tables.ts'
import { nowSql } from './clock-sql.ts'
import type { Names } from './names.ts'
import type { Executor, Statement } from './statement.ts'

/** Records without any lock, and the time. One row for each id that was asked for, in that order, and one for none. */
export function createRead(names: Names): ReadRecords<Executor> {
  const statement: Statement = {
    name: 'onceonly_read',
    text: `
      WITH moment AS MATERIALIZED (SELECT ${nowSql(names)} AS now)
      SELECT m.now, ${columnsOf('r')}
      FROM moment AS m
      LEFT JOIN unnest($1::uuid[]) WITH ORDINALITY AS asked(id, place) ON true
      LEFT JOIN ${names.records} AS r ON r.id = asked.id
      ORDER BY asked.place`,
  }
  return async (on, ids) => {
    const rows = await on.run(statement, [ids])
    const records = ids.map((_, index) => {
      const row = rows[index]
      return row === undefined || row['id'] === null ? null : recordOf(row)
    })
    return { now: Number(rows[0]?.['now']), records }
  }
}
