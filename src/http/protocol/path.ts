/** A request target in one spelling. `query` is empty, or begins with `?`: `path + query` is a target again. */
export interface Target {
  readonly path: string
  readonly query: string
}

/** Node takes no longer header than this, so that nothing is refused here that reached us in the usual way. */
const MAX_TARGET_CHARS = 16_384

const HASH = 0x23
const BACKSLASH = 0x5c

/** A path that has one spelling only: no query, nothing encoded, and no segment that begins with a dot. */
const plainPath = /^(?:\/[\w~-][\w.~-]*)+$/

/**
 * The target of a request without spellings that mean the same (RFC 3986, section 6.2.2): unreserved characters are
 * never encoded, hex digits are upper-case, dot segments are gone and never lead above the root. Nothing else changes,
 * because it could be another resource: encoded slashes stay encoded, duplicate slashes stay, the query keeps its order,
 * and nothing is decoded twice. A scheme and an authority are dropped.
 *
 * The path may begin with `//`. Resolving it as a relative reference would take the next segment for a host.
 */
export function normaliseTarget(target: string): Target | { readonly problem: string } {
  if (target.length <= MAX_TARGET_CHARS && plainPath.test(target)) return { path: target, query: '' }
  if (target.length > MAX_TARGET_CHARS) {
    return { problem: `The request target is longer than ${MAX_TARGET_CHARS} characters.` }
  }
  const start = pathStart(target)
  if (start === null) return { problem: 'The request target is neither a path nor an http URL.' }
  const mark = target.indexOf('?', start)
  const pathEnd = mark < 0 ? target.length : mark
  const fault = faultOf(target, pathEnd)
  if (fault !== null) return { problem: fault }
  return {
    path: withoutDots(percentNormalised(target.slice(start, pathEnd)) || '/'),
    query: percentNormalised(target.slice(pathEnd)),
  }
}

/** Where the path begins, after the scheme and host of an absolute form; `null` where there is no path. */
function pathStart(target: string): number | null {
  if (target.startsWith('/')) return 0
  return /^https?:\/\/[^/?#]+/i.exec(target)?.[0].length ?? null
}

function faultOf(target: string, pathEnd: number): string | null {
  for (let at = 0; at < target.length; at++) {
    const code = target.charCodeAt(at)
    if (code === HASH) return `The request target has a fragment (offset ${at}).`
    if (code <= 0x20 || code >= 0x7f)
      return `The request target contains something else than visible ASCII at offset ${at}.`
    // URL parsers read it as a slash before the query, and path parsers do not: two resources would look the same.
    if (code === BACKSLASH && at < pathEnd) return `The request target contains a backslash at offset ${at}.`
  }
  if (!target.includes('%')) return null
  const broken = target.search(/%(?![0-9A-Fa-f]{2})/)
  return broken < 0 ? null : `The request target has an invalid percent-encoding at offset ${broken}.`
}

function percentNormalised(text: string): string {
  if (!text.includes('%')) return text
  return text.replace(/%../g, (encoded) => {
    const char = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(char) ? char : encoded.toUpperCase()
  })
}

/** RFC 3986, section 5.2.4. An empty segment is a segment: `..` takes it away like any other. */
function withoutDots(path: string): string {
  if (!path.includes('/.')) return path
  const kept: string[] = []
  const segments = path.slice(1).split('/')
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  const last = segments.at(-1)
  // What a dot segment at the end names is a folder.
  if (last === '.' || last === '..') kept.push('')
  return `/${kept.join('/')}`
}
