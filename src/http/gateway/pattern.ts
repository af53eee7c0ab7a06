import { normaliseTarget } from '../protocol/path.ts'
import { readingsOf, readSegment } from './readings.ts'

/** Whether a normalised path fits, or one of its readings, which are made once for all patterns. */
export type Pattern = (path: string, readings?: () => readonly string[]) => boolean

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

/**
 * `:name` stands for one segment that is not empty, `*` at the end for all that follows, also nothing. Unless it is strict, a
 * pattern also fits what services commonly take for the same path: other letter case, a slash more, parameters, encodings.
 */
export function compilePattern(pattern: string, strict = false): Pattern {
  const exact = new RegExp(`^${sourceOf(pattern, spelled)}$`)
  if (strict) return (path) => exact.test(path)
  const alike = new RegExp(`^${sourceOf(withoutEmpty(pattern), (segment) => readSegment(spelled(segment)))}$`, 'i')
  return (path, readings = () => readingsOf(path)) =>
    exact.test(path) || readings().some((reading) => alike.test(reading))
}

function sourceOf(pattern: string, literal: (segment: string) => string): string {
  return pattern
    .slice(1)
    .split('/')
    .map((segment) => {
      if (segment === '*') return '(?:/.*)?'
      return NAMED.test(segment) ? '/[^/]+' : `/${escaped(literal(segment))}`
    })
    .join('')
}

function withoutEmpty(pattern: string): string {
  return `/${pattern
    .split('/')
    .filter((segment) => segment !== '')
    .join('/')}`
}

/** In the one spelling in which requests are compared. */
function spelled(segment: string): string {
  const target = normaliseTarget(`/${segment}`)
  return 'problem' in target ? segment : target.path.slice(1)
}

function escaped(literal: string): string {
  return literal.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
