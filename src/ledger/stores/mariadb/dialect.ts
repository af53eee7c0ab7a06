import type { ColumnType, Dialect } from '../../store/dialect.ts'
import { assignments } from '../../store/dialect.ts'

/** Bytes are compared, and spaces at the end count. */
export const TEXT = 'CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin'

/** In a small table the planner prefers to read every row, and a statement that locks then waits for all of them. */
export const BY_KEY = 'FORCE INDEX (PRIMARY)'

const typeOf: Readonly<Record<ColumnType, string>> = {
  text: `LONGTEXT ${TEXT}`,
  bigint: 'BIGINT',
  id: 'CHAR(32) CHARACTER SET ascii',
}

export const mariadb: Dialect<'mariadb'> = {
  name: 'mariadb',
  types: {
    integer: 'BIGINT',
    text: `LONGTEXT ${TEXT}`,
    position: 'BIGINT AUTO_INCREMENT PRIMARY KEY',
    busyTable: '',
  },
  writers: 2,
  notifies: false,
  writesInParts: false,
  // Rows of other tables in a join stay free: they come from JSON.
  lock: (how) => how.replace(/ of \w+/, ''),
  place: (type) => (type === 'id' ? 'UNHEX(?)' : '?'),
  idText: (column) => `LOWER(HEX(${column}))`,
  orderedJoin: 'STRAIGHT_JOIN',
  byKey: BY_KEY,
  isOneOf: (column) => `${column} IN (SELECT n FROM JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) AS list)`,
  numbersValue: (numbers) => `[${numbers.join(',')}]`,
  isAnyOf: (column, query) => `${column} IN (SELECT * FROM (${query}) AS chosen)`,
  elementsOf: (alias) => `JSON_TABLE(?, '$[*]' COLUMNS (\`key\` FOR ORDINALITY, value JSON PATH '$')) AS ${alias}`,
  elementText: (value) => `JSON_UNQUOTE(${value})`,
  textBefore: (column, character) => `SUBSTRING_INDEX(${column}, '${character}', 1)`,
  randomText: `LOWER(HEX(RANDOM_BYTES(16)))`,
  recordsOf: (columns) => {
    const paths = Object.entries(columns).map(([name, type]) => `${name} ${typeOf[type]} PATH '$.${name}'`)
    const table = `JSON_TABLE(?, '$[*]' COLUMNS (${paths.join(', ')}))`
    const ids = Object.values(columns).includes('id')
    if (!ids) return `${table} AS x`
    const given = Object.entries(columns).map(([name, type]) => (type === 'id' ? `UNHEX(${name}) AS ${name}` : name))
    return `(SELECT ${given.join(', ')} FROM ${table} AS given) AS x`
  },
  updateFrom: (table, set, from, where) => {
    const changes = Object.entries(set).map(([column, value]) => `r.${column} = ${value}`)
    return `UPDATE ${from} STRAIGHT_JOIN ${table} ${BY_KEY} ON ${where} SET ${changes.join(', ')}`
  },
  upsert: (_key, set) => {
    const given = Object.entries(set).map(([column, value]) => [
      column,
      value.replace(/\bexcluded\.(\w+)/g, 'VALUES($1)'),
    ])
    return `ON DUPLICATE KEY UPDATE ${assignments(Object.fromEntries(given))}`
  },
}
