import { digestParts } from '../core/digest.ts'
import { OnceError } from '../core/errors.ts'

/** One part of a content. A missing part (null or undefined) is not an empty one, and `1` is not `'1'`. */
export type ContentPart = string | number | bigint | boolean | null | undefined

/** Names the operations whose keys are contents, so that no key of a caller is ever taken for a content. */
export const GUARD_PREFIX = 'guard.'

/** The caller of a content that all callers of a tenant share. */
export const ANY_CALLER = '*'

/** The key of a content: equal parts have an equal key. */
export function contentKey(parts: readonly ContentPart[]): string {
  return digestParts(parts.flatMap(spelled))
}

function spelled(part: ContentPart, index: number): readonly (string | null)[] {
  if (part === null || part === undefined) return [null]
  if (!isPart(part)) {
    const field = `content[${index}]`
    const text = `${field} is ${described(part)}: a part of the content is a string, a number, a boolean or null.`
    throw new OnceError('bad_input', text, { details: { field } })
  }
  return [typeof part, String(part)]
}

function isPart(part: unknown): boolean {
  if (typeof part === 'number') return Number.isFinite(part)
  return typeof part === 'string' || typeof part === 'bigint' || typeof part === 'boolean'
}

function described(part: unknown): string {
  if (typeof part === 'number') return `the number ${part}`
  return Array.isArray(part) ? 'an array' : typeof part === 'object' ? 'an object' : `a ${typeof part}`
}

/** What an operation needs whose key is the content. The window counts from the claim, and no duplicate extends it. */
export function contentPolicy(withinMs: number) {
  return {
    retainMs: withinMs,
    retainFrom: 'claimed',
    // A holder that died before it named what it made leaves the content free; afterwards the original stands.
    onAbandoned: 'hold_attached',
  } as const
}
