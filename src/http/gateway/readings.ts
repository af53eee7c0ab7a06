/** What makes services read one path in several ways; a path without any of it has one reading. */
const ODD = /[%;]|\/\/|.\/$|\/\./

interface Reading {
  /** `%2F` is a slash like any other, or a character of its segment. */
  readonly decodesSlashes: boolean
  /** `;…` at the end of a segment is a parameter, or a part of the name. */
  readonly cutsParameters: boolean
  /** Of `a//..`: `..` takes `a` away, or the empty segment after it. */
  readonly mergesFirst: boolean
}

const both = [true, false] as const
const readings: readonly Reading[] = both.flatMap((decodesSlashes) =>
  both.flatMap((cutsParameters) => both.map((mergesFirst) => ({ decodesSlashes, cutsParameters, mergesFirst }))),
)

/**
 * The paths that services behind a gateway may take a path for: percent-encodings decoded once, segments
 * without parameters, dot segments resolved after that, slashes not doubled, none at the end. They decide which rule a
 * request belongs to, and nothing else: it is forwarded, and remembered, as it came.
 */
export function readingsOf(path: string): readonly string[] {
  if (!ODD.test(path)) return [path]
  const paths = [path, ...withoutHost(path)]
  return [...new Set(paths.flatMap((each) => readings.map((reading) => readPath(each, reading))))]
}

/** A service that resolves its target as a URL takes what follows two slashes for a host, and the rest for the path. */
function withoutHost(path: string): readonly string[] {
  const [host = ''] = /^\/{2,}[^/]*/.exec(path) ?? []
  return host === '' ? [] : [path.slice(host.length) || '/']
}

/** How a literal segment of a pattern is compared with those readings. */
export function readSegment(segment: string): string {
  return decoded(segment, false)
}

function readPath(path: string, { decodesSlashes, cutsParameters, mergesFirst }: Reading): string {
  const segments = decoded(path, decodesSlashes)
    .split('/')
    .slice(1)
    // What is written in C ends at a zero.
    .map((segment) => segment.replace(cutsParameters ? /[;\0].*$/s : /\0.*$/s, ''))
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && !(mergesFirst && segment === '')) kept.push(segment)
  }
  return `/${kept.filter((segment) => segment !== '').join('/')}`
}

function decoded(text: string, decodesSlashes: boolean): string {
  if (!text.includes('%')) return text
  return text.replaceAll(/(?:%[0-9A-Fa-f]{2})+/g, (encoded) => {
    const plain = Buffer.from(encoded.replaceAll('%', ''), 'hex').toString()
    return decodesSlashes ? plain.replaceAll('\\', '/') : plain.replaceAll('/', '%2F').replaceAll('\\', '%5C')
  })
}
