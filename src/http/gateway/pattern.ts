import { normaliseTarget } from '../protocol/path.ts'

/** Whether a normalised path fits. */
export type Pattern = (path: string) => boolean

const NAMED = /^:[A-Za-z_]\w*$/

/** @returns what is wrong with a pattern, or null */
export function patternFault(pattern: string): string | null {
  if (!pattern.startsWith('/')) return 'does not begin with a slash'
  if (pattern.includes('?')) return 'has a query; rules look at paths only'
  const segments = pattern.slice(1).split('/')
  for (const [at, segment] of segments.entries()) {
    if (segment === '*' && at < segments.length - 1) return 'has a `*` before its end'
    if (segment !== '*' && segment.includes('*')) return 'has a `*` inside of a segment'
    if (segment.includes(':') && segment.startsWith(':') && !NAMED.test(segment)) return `has no name in \`${segment}\``
  }
  const literal = normaliseTarget(pattern.replaceAll('*', 'x'))
  return 'problem' in literal ? `cannot be a path: ${literal.problem}` : null
}

/** `:name` stands for one segment that is not empty, `*` at the end for all that follows, also nothing. */
export function compilePattern(pattern: string): Pattern {
  const segments = pattern.slice(1).split('/')
  const source = segments
    .map((segment) => {
      if (segment === '*') return '(?:/.*)?'
      return NAMED.test(segment) ? '/[^/]+' : `/${escaped(spelled(segment))}`
    })
    .join('')
  const expression = new RegExp(`^${source}$`)
  return (path) => expression.test(path)
}

/** In the one spelling in which requests are compared. */
function spelled(segment: string): string {
  const target = normaliseTarget(`/${segment}`)
  return 'problem' in target ? segment : target.path.slice(1)
}

function escaped(literal: string): string {
  return literal.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
