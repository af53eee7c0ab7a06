import type { Dialect } from '../../store/dialect.ts'
import { assignments } from '../../store/dialect.ts'
import type { RoomDialect } from '../../store/sql.ts'

export const sqlite: RoomDialect & Dialect<'sqlite'> = {
  name: 'sqlite',
  types: {
    integer: 'INTEGER',
    text: 'TEXT',
    // Without the last word a number could come again, when the newest rows were removed.
    position: 'INTEGER PRIMARY KEY AUTOINCREMENT',
    busyTable: '',
  },
  writers: 1,
  notifies: false,
  writesInParts: false,
  // There is one writer.
  lock: () => '',
  // Values have types, columns only prefer one.
  place: (type) => (type === 'id' ? 'unhex(?)' : '?'),
  idText: (column) => `lower(hex(${column}))`,
  // SQLite never reorders the sides of this one.
  orderedJoin: 'cross join',
  isOneOf: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  numbersValue: (numbers) => `[${numbers.join(',')}]`,
  isAnyOf: (column, query) => `${column} IN (${query})`,
  elementsOf: (alias) => `json_each(?) AS ${alias}`,
  elementText: (value) => value,
  textBefore: (column, character) => {
    const at = `instr(${column}, '${character}')`
    return `(case when ${at} > 0 then substr(${column}, 1, ${at} - 1) else ${column} end)`
  },
  randomText: 'lower(hex(randomblob(16)))',
  recordsOf: (columns) => {
    const extracts = Object.entries(columns).map(([name, type]) => {
      const value = `json_extract(value, '$.${name}')`
      return `${type === 'id' ? `unhex(${value})` : value} as ${name}`
    })
    return `(select ${extracts.join(', ')} from json_each(?)) as x`
  },
  updateFrom: (table, set, from, where) => `UPDATE ${table} SET ${assignments(set)} FROM ${from} WHERE ${where}`,
  tableNames: `SELECT name FROM sqlite_schema WHERE type = 'table'`,
  rowPlace: { column: 'rowid', value: '?', first: '-9223372036854775808', valueOf: BigInt },
  appendOnly: (table, refusal) =>
    ['UPDATE', 'DELETE'].map(
      (what) => `CREATE TRIGGER ${table}_no_${what.toLowerCase()}
  BEFORE ${what} ON ${table} BEGIN SELECT RAISE(ABORT, '${refusal}'); END`,
    ),
  upsert: (key, set) => `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${assignments(set)}`,
}
