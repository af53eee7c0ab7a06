import type { FieldError } from '../http/problem.ts'
import { complaintAboutText } from '../http/text.ts'

export interface EscalateCommand {
  readonly caseId: string
  readonly targetQueue: string
  readonly reason: string | null
}

type Parsed = { readonly command: EscalateCommand } | { readonly errors: readonly FieldError[] }

/** Lengths in characters; a longer text is a mistake or an attack, and neither may reach the store. */
export const lengths = { caseId: 100, targetQueue: 100, reason: 2000 } as const

/** Looks at every field, so that a person can mend all of them at once. */
export function parseEscalate(body: unknown): Parsed {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { errors: [{ field: 'body', detail: 'is not a JSON object' }] }
  }
  const fields: Readonly<Record<string, unknown>> = { ...body }
  const errors: FieldError[] = Object.keys(fields)
    .filter((field) => !Object.hasOwn(lengths, field))
    .map((field) => ({ field, detail: 'is not a field of this command' }))
  const caseId = text('caseId')
  const targetQueue = text('targetQueue')
  const reason = fields['reason'] === undefined || fields['reason'] === null ? null : text('reason')
  return errors.length > 0 ? { errors } : { command: { caseId, targetQueue, reason } }

  function text(field: keyof typeof lengths): string {
    const value = fields[field]
    const detail = complaintAboutText(value, lengths[field])
    if (detail !== null) errors.push({ field, detail })
    return typeof value === 'string' ? value : ''
  }
}
