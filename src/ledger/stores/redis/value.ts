import { OnceError } from '../../core/errors.ts'
import type { ClaimId, Fence, RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { fromRow, policyText, toRow } from '../../store/row.ts'

/**
 * A record is one string of five parts, divided by line ends: a head of numbers and single words, which changes with the
 * state; whose it is, which stays the same from the claim to the settle; its pointer; the rarer fields; its outcome, last
 * and as it is, because it may be large. The parts in the middle are JSON, which has no line ends, or empty. Whatever is
 * absent in the head is `-`.
 *
 * `FORMAT fence claimId state awaited dueAt settledAt expiresAt goneAt kept`
 * `incarnation attempts claimedAt [tenant, caller, operation, key, batch, fingerprint, policy]`
 */
export const FORMAT = '2'

const ABSENT = '-'

/** How the record of an attempt begins: a script that finds it knows that the attempt still owns the record. */
export function ownerText(fence: Fence, claimId: ClaimId): string {
  return `${FORMAT} ${fence} ${claimId} `
}

/** The identity of a record, and its policy. */
export function whoText({ identity, fingerprint, policy }: Pick<LedgerRecord, 'identity' | 'fingerprint' | 'policy'>) {
  const { tenant, caller, operation, key, batch } = identity
  return JSON.stringify([tenant, caller, operation, key, batch ?? null, fingerprint, policyText(policy)])
}

/** Absent and empty are different outcomes. */
export function outcomeText(outcome: string | null): string {
  return outcome === null ? '' : `=${outcome}`
}

export function encodeRecord(record: LedgerRecord): string {
  const row = toRow(record)
  const changing = [
    row.state,
    row.awaited,
    row.due_at === null ? ABSENT : Math.ceil(row.due_at),
    row.settled_at ?? ABSENT,
    row.expires_at ?? ABSENT,
    row.gone_at ?? ABSENT,
    row.kept ?? ABSENT,
  ].join(' ')
  const who = `${row.incarnation} ${row.attempts} ${row.claimed_at} ${whoText(record)}`
  const head = ownerText(record.fence, record.claimId) + changing
  return [head, who, row.pointer ?? '', row.detail ?? '', outcomeText(row.outcome)].join('\n')
}

type Who = [tenant: string, caller: string, operation: string, key: string, batch: string | null, ...rest: string[]]

export function decodeRecord(id: RecordId, value: string): LedgerRecord {
  const [head, life, pointer, detail, outcome] = parted(value)
  const [format, fence, claimId, state, awaited, dueAt, settledAt, expiresAt, goneAt, kept] = head.split(' ')
  if (format !== FORMAT) throw new OnceError('schema_too_new', `Record ${id} is of format ${String(format)}.`)
  const [incarnation, attempts, claimedAt] = life.split(' ', 3)
  const who = life.slice(life.indexOf('['))
  const [tenant, caller, operation, key, batch, fingerprint = '', policy = ''] = JSON.parse(who) as Who
  return fromRow({
    id,
    tenant,
    caller,
    operation,
    key,
    batch,
    fingerprint,
    policy,
    state: Number(state),
    claim_id: claimId ?? '',
    fence: Number(fence),
    incarnation: Number(incarnation),
    attempts: Number(attempts),
    claimed_at: Number(claimedAt),
    due_at: numberOrNull(dueAt),
    settled_at: numberOrNull(settledAt),
    expires_at: numberOrNull(expiresAt),
    gone_at: numberOrNull(goneAt),
    kept: numberOrNull(kept),
    outcome: outcome === '' ? null : outcome.slice(1),
    pointer: pointer === '' ? null : pointer,
    awaited: Number(awaited),
    detail: detail === '' ? null : detail,
  })
}

/** The outcome may hold line ends of its own. */
function parted(value: string): [head: string, life: string, pointer: string, detail: string, outcome: string] {
  const parts: string[] = []
  let from = 0
  for (let line = 0; line < 4; line++) {
    const end = value.indexOf('\n', from)
    parts.push(value.slice(from, end))
    from = end + 1
  }
  const [head = '', life = '', pointer = '', detail = ''] = parts
  return [head, life, pointer, detail, value.slice(from)]
}

function numberOrNull(text: string | undefined): number | null {
  return text === undefined || text === ABSENT ? null : Number(text)
}
