import type { Static } from 'typebox'
import { oneOf } from '../http/input.ts'
import { instant, named, record, text, textOrNull } from '../openapi/declaration.ts'

/** What clients see of an escalation. */
export const escalation = named(
  'Escalation',
  record({
    escalationId: { ...text, examples: ['ESC-1001'] },
    caseId: text,
    targetQueue: text,
    reason: textOrNull,
    status: oneOf(['OPEN']),
    createdAt: instant,
  }),
)
export type Escalation = Static<typeof escalation>

export interface EscalationRow {
  readonly number: number | bigint | string
  readonly case_id: string
  readonly target_queue: string
  readonly reason: string | null
  readonly created_at: string
}

/** Numbers are shown from 1001 on, so that they all look alike. */
const shownFrom = 1000

export const columns = 'number, case_id, target_queue, reason, created_at'

export function escalationOf(row: EscalationRow): Escalation {
  return {
    escalationId: `ESC-${shownFrom + Number(row.number)}`,
    caseId: row.case_id,
    targetQueue: row.target_queue,
    reason: row.reason,
    status: 'OPEN',
    createdAt: row.created_at,
  }
}

/** Null when the text cannot name an escalation. */
export function numberOf(escalationId: string): number | null {
  const digits = /^ESC-(\d{4,15})$/.exec(escalationId)?.[1]
  return digits === undefined ? null : Number(digits) - shownFrom
}
