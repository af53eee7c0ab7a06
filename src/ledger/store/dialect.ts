import { postgres } from './dialect-postgres.ts'
import { sqlite } from './dialect-sqlite.ts'
import type { DialectWords } from './dialect-words.ts'
import type { Dialect } from './sql.ts'

export type { RecordColumns } from './dialect-words.ts'

export const dialects: Readonly<Record<Dialect, DialectWords>> = { sqlite, postgres }
