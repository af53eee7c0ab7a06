import type { SqlSeam } from '../sql.ts'

/** A store without keys keeps texts as they are. */
export const plainTexts: Pick<SqlSeam, 'secret' | 'lookup'> = {
  secret: (text) => text,
  lookup: (text) => text,
}

/** What the tables of wings keep: bound to the store, not to a row, because a row may be read by any statement. */
export const ROW = 'row'
