import type { FieldError } from '../http/problem.ts'
import { complaintAboutText } from '../http/text.ts'
import type { Right } from '../workspaces/workspaces.ts'
import { rightNames } from '../workspaces/workspaces.ts'

/** Longer than any name that a person would choose. */
export const NAME_CHARS_MOST = 100
/** Ten years: further than any retention reaches. */
export const ADVANCE_MS_MOST = 10 * 365 * 24 * 3_600_000

export function fieldOf(body: unknown, field: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[field] : undefined
}

export function check(field: string, value: unknown): FieldError[] {
  const detail = complaintAboutText(value, NAME_CHARS_MOST)
  return detail === null ? [] : [{ field, detail }]
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => check('queue', each).length === 0)
}

export function isRights(value: unknown): value is Right[] {
  return Array.isArray(value) && value.every((each) => (rightNames as readonly unknown[]).includes(each))
}
