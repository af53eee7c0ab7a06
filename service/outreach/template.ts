import { complaintAboutPath, lookUp } from './scope.ts'
import type { Scope } from './sequence.ts'

const VARIABLE = /\{\{([^{}]*)\}\}/g

/** What is wrong with a template, or null: every variable is checked when the sequence is stored, not when it is sent. */
export function complaintAboutTemplate(template: string, earlier: ReadonlySet<string>): string | null {
  for (const [, path = ''] of template.matchAll(VARIABLE)) {
    const complaint = complaintAboutPath(path.trim(), earlier)
    if (complaint !== null) return complaint
  }
  return template.replaceAll(VARIABLE, '').includes('{{') ? 'opens a {{ that is never closed' : null
}

/** In one pass: what a value contains is text, and never a variable itself. What is not known becomes nothing. */
export function render(template: string, scope: Scope): string {
  return template.replaceAll(VARIABLE, (_, path: string) => textOf(lookUp(scope, path.trim())))
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
