import type { ColumnType, DialectWords } from './dialect-words.ts'
import { assignments } from './dialect-words.ts'

const typeOf = (type: ColumnType) => (type === 'id' ? 'uuid' : type)

export const postgres: DialectWords = {
  lock: (how) => how,
  place: (type) => `?::${typeOf(type)}`,
  idText: (column) => `replace(${column}::text, '-', '')`,
  orderedJoin: 'join',
  isOneOf: (column) => `${column} = ANY (CAST(? AS bigint[]))`,
  numbersValue: (numbers) => `{${numbers.join(',')}}`,
  elementsOf: (alias) => `json_array_elements(CAST(? AS json)) WITH ORDINALITY AS ${alias} (value, key)`,
  recordsOf: (columns) => {
    const typed = Object.entries(columns).map(([name, type]) => `${name} ${typeOf(type)}`)
    return `json_to_recordset(?::json) as x(${typed.join(', ')})`
  },
  updateFrom: (table, set, from, where) => `UPDATE ${table} SET ${assignments(set)} FROM ${from} WHERE ${where}`,
  upsert: (key, set) => `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${assignments(set)}`,
}
