import type { VisibleState } from '../../core/record.ts'
import type { RecordFilter } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'

/** One state that operators see may be several in the table. */
const codesOf = {
  in_progress: [stateCode.reserved, stateCode.running],
  succeeded: [stateCode.succeeded],
  failed_terminal: [stateCode.failed_terminal],
  failed_retryable: [stateCode.failed_retryable, stateCode.lapsed],
  unknown: [stateCode.unknown],
} as const satisfies Record<VisibleState, readonly number[]>

export const stateOfCode: ReadonlyMap<number, VisibleState> = new Map(
  Object.entries(codesOf).flatMap(([state, codes]) => codes.map((code) => [code, state as VisibleState] as const)),
)

/** The columns that a filter looks at. */
export const FILTER_COLUMNS = 'state, expires_at, claimed_at, tenant, caller, operation, key'

export interface Where {
  readonly text: string
  readonly values: readonly (string | number)[]
}

const VISIBLE = [
  `state NOT IN (${stateCode.released}, ${stateCode.forgotten})`,
  '(expires_at IS NULL OR expires_at > ?)',
] as const

/** Expired and vacant records are invisible, whether or not the sweep has been there, unless they are asked for. */
export function whereOf(filter: RecordFilter, now: number): Where {
  const ended = filter.ended === true
  const texts: string[] = ended ? ['true'] : [...VISIBLE]
  const values: (string | number)[] = ended ? [] : [now]
  for (const column of ['tenant', 'caller', 'operation', 'key'] as const) {
    const wanted = filter[column]
    if (wanted === undefined) continue
    texts.push(`${column} = ?`)
    values.push(wanted)
  }
  if (filter.state !== undefined) texts.push(`state IN (${codesOf[filter.state].join(', ')})`)
  if (filter.since !== undefined) {
    texts.push('claimed_at >= ?')
    values.push(filter.since)
  }
  return { text: texts.join(' AND '), values }
}
