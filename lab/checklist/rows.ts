import { guard } from './guard.ts'
import { ordering } from './ordering.ts'
import type { Row } from './row.ts'
import { saga } from './saga.ts'

/** The mission, line by line. */
export const rows: readonly Row[] = [...guard, ...ordering, ...saga]
