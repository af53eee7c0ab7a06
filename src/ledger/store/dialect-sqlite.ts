import type { DialectWords } from './dialect-words.ts'

export const sqlite: DialectWords = {
  // There is one writer.
  lock: () => '',
  // Values have types, columns only prefer one.
  place: () => '?',
  // SQLite never reorders the sides of this one.
  orderedJoin: 'cross join',
  isOneOf: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  numbersValue: (numbers) => `[${numbers.join(',')}]`,
  elementsOf: (alias) => `json_each(?) AS ${alias}`,
  recordsOf: (columns) => {
    const extracts = Object.keys(columns).map((name) => `json_extract(value, '$.${name}') as ${name}`)
    return `(select ${extracts.join(', ')} from json_each(?)) as x`
  },
}
