import type { DialectWords } from './dialect-words.ts'

export const postgres: DialectWords = {
  lock: (how) => how,
  place: (type) => `?::${type}`,
  orderedJoin: 'join',
  isOneOf: (column) => `${column} = ANY (CAST(? AS bigint[]))`,
  numbersValue: (numbers) => `{${numbers.join(',')}}`,
  elementsOf: (alias) => `json_array_elements(CAST(? AS json)) WITH ORDINALITY AS ${alias} (value, key)`,
  recordsOf: (columns) => {
    const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
    return `json_to_recordset(?::json) as x(${typed.join(', ')})`
  },
}
