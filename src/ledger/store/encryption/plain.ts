import type { SqlSeam } from '../sql.ts'

/** A store without keys keeps texts as they are. */
export const plainTexts: Pick<SqlSeam, 'secret' | 'lookup'> = {
  secret: (text) => text,
  lookup: (text) => text,
}
