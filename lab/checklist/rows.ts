import { guard } from './guard.ts'
import type { Row } from './row.ts'

/** The mission, line by line. */
export const rows: readonly Row[] = [...guard]
