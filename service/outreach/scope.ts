import { leadFields, type Scope } from './sequence.ts'

const PART = /^[\w-]{1,64}$/

/** What is wrong with a path that a template or a condition names; null when it can be looked up. */
export function complaintAboutPath(path: string, earlier: ReadonlySet<string>): string | null {
  const [root, name = '', ...rest] = path.split('.')
  const wellFormed = [name, ...rest].every((part) => PART.test(part))
  if (root === 'lead' && rest.length === 0 && leadFields.some((field) => field === name)) return null
  if (root === 'results' && wellFormed && earlier.has(name)) return null
  if (root === 'results' && wellFormed) return `names ${path}, but no earlier step is called ${name}`
  const known = leadFields.map((field) => `lead.${field}`).join(', ')
  return `names ${JSON.stringify(path)}, which is none of ${known} or results.STEP.FIELD`
}

/** Undefined where nothing stands. Only own members count: a name must not reach into what every object has. */
export function lookUp(scope: Scope, path: string): unknown {
  return path.split('.').reduce<unknown>((value, part) => {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    return (value as Readonly<Record<string, unknown>>)[part]
  }, scope)
}
