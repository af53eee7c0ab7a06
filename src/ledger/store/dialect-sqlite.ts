import type { DialectWords } from './dialect-words.ts'
import { assignments } from './dialect-words.ts'

export const sqlite: DialectWords = {
  // There is one writer.
  lock: () => '',
  // Values have types, columns only prefer one.
  place: (type) => (type === 'id' ? 'unhex(?)' : '?'),
  idText: (column) => `lower(hex(${column}))`,
  // SQLite never reorders the sides of this one.
  orderedJoin: 'cross join',
  isOneOf: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  numbersValue: (numbers) => `[${numbers.join(',')}]`,
  elementsOf: (alias) => `json_each(?) AS ${alias}`,
  recordsOf: (columns) => {
    const extracts = Object.entries(columns).map(([name, type]) => {
      const value = `json_extract(value, '$.${name}')`
      return `${type === 'id' ? `unhex(${value})` : value} as ${name}`
    })
    return `(select ${extracts.join(', ')} from json_each(?)) as x`
  },
  updateFrom: (table, set, from, where) => `UPDATE ${table} SET ${assignments(set)} FROM ${from} WHERE ${where}`,
  upsert: (key, set) => `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${assignments(set)}`,
}
