import type { SqlTx, TransactionContext } from 'onceonly'
import type { Base } from '../store.ts'
import { caseById } from './cases.ts'
import type { EscalateCommand } from './document.ts'
import { columns, type Escalation, type EscalationRow, escalationOf } from './escalation.ts'

export type Escalated =
  | { readonly kind: 'created'; readonly escalation: Escalation }
  /** Business uniqueness, independent of keys: one open escalation per case and queue. */
  | { readonly kind: 'already'; readonly escalation: Escalation }
  | { readonly kind: 'not_escalatable' }
  | { readonly kind: 'case_not_found' }

export const NOT_ESCALATABLE_TEXT = 'This case cannot be escalated to this queue.'

export function alreadyText({ escalationId, caseId, targetQueue }: Escalation): string {
  return `${caseId} is already escalated to ${targetQueue} as ${escalationId}.`
}

export interface Asking {
  readonly tenant: string
  readonly caller: string
  /** By the store's clock. */
  readonly now: number
  readonly sql: Pick<Base['sql'], 'secret'>
}

/** Escalation, audit row and event commit with the record of the command, or not at all. */
export async function escalate(
  { tx, outbox, note, derive }: TransactionContext<SqlTx>,
  { tenant, caller, now, sql }: Asking,
  { caseId, targetQueue, reason = null }: EscalateCommand,
): Promise<Escalated> {
  const found = await caseById(tx.query, tenant, caseId)
  if (found === null) return { kind: 'case_not_found' }
  if (!found.escalatableTo.includes(targetQueue)) return { kind: 'not_escalatable' }
  const open = await openEscalation(tx, tenant, caseId, targetQueue)
  if (open !== null) {
    note({ taken: open.escalationId })
    return { kind: 'already', escalation: open }
  }

  const at = new Date(now).toISOString()
  const [next] = await tx.query<{ last: number }>('update escalation_counter set last = last + 1 returning last')
  const [row] = await tx.query<EscalationRow>(
    `insert into case_escalations (number, tenant, case_id, target_queue, reason, created_at)
     values (?, ?, ?, ?, ?, ?) on conflict (tenant, case_id, target_queue) do nothing returning ${columns}`,
    [Number(next?.last), tenant, caseId, targetQueue, sql.secret(reason), at],
  )
  if (row === undefined) {
    // Another command was faster, between our look and our insert; it has committed by now.
    const theirs = await openEscalation(tx, tenant, caseId, targetQueue)
    if (theirs === null) throw new Error('An escalation that stands in the way cannot be found')
    note({ taken: theirs.escalationId })
    return { kind: 'already', escalation: theirs }
  }
  const escalation = escalationOf(row)
  await tx.query(
    'insert into escalation_audit (id, tenant, caller, action, escalation, at) values (?, ?, ?, ?, ?, ?)',
    [derive('audit'), tenant, caller, 'CASE_ESCALATED', Number(row.number), at],
  )
  await outbox.add({ topic: 'CaseEscalated', key: caseId, body: { ...escalation, tenant } })
  return { kind: 'created', escalation }
}

async function openEscalation(tx: SqlTx, tenant: string, caseId: string, queue: string): Promise<Escalation | null> {
  const [row] = await tx.query<EscalationRow>(
    `select ${columns} from case_escalations where tenant = ? and case_id = ? and target_queue = ?`,
    [tenant, caseId, queue],
  )
  return row === undefined ? null : escalationOf(row)
}
