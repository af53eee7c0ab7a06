import { lengthPrefixed } from '../../ledger/core/digest.ts'

/** A header value with parameters: a media type, or a content disposition. */
export interface Parameterised {
  /** In lower case. */
  readonly value: string
  /** Names in lower case. What stood in quotes is kept as it stood, escapes included. */
  readonly parameters: ReadonlyMap<string, string>
}

/** Longer than any real one: more is hostile. */
const MAX_CHARS = 8_192

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const disposition = new RegExp(`[ \\t]*(${token})`, 'y')
const mediaType = new RegExp(`[ \\t]*(${token}/${token})`, 'y')
// Values without quotes are wider than tokens: Java's boundaries hold `=`, and file names hold bytes of UTF-8.
const parameter = new RegExp(`[ \\t]*;[ \\t]*(?:(${token})=(?:"((?:[^"\\\\]|\\\\.)*)"|([^ \\t;"]+)))?`, 'y')

export function parseMediaType(text: string): Parameterised | null {
  return parse(text, mediaType)
}

export function parseDisposition(text: string): Parameterised | null {
  return parse(text, disposition)
}

/** @returns `null` for what is malformed, or has no single meaning because a name stands there twice */
function parse(text: string, head: RegExp): Parameterised | null {
  if (text.length > MAX_CHARS || hasControl(text)) return null
  head.lastIndex = 0
  const value = head.exec(text)?.[1]
  if (value === undefined) return null
  const parameters = new Map<string, string>()
  let end = head.lastIndex
  parameter.lastIndex = end
  for (let found = parameter.exec(text); found !== null; found = parameter.exec(text)) {
    end = parameter.lastIndex
    const [, name, quoted, bare] = found
    if (name === undefined) continue
    if (parameters.has(name.toLowerCase())) return null
    parameters.set(name.toLowerCase(), quoted ?? bare ?? '')
  }
  return /^[ \t]*$/.test(text.slice(end)) ? { value: value.toLowerCase(), parameters } : null
}

/** Without the white space of HTTP around it. `trim` takes more away: the last byte of `à` in UTF-8, for one. */
export function withoutSpace(text: string): string {
  // The look-behind keeps a long run of spaces inside of the text from being tried at each of them.
  return text.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '')
}

/** Control characters have no place in a header, and a tab only between its words. */
export function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return true
  }
  return false
}

/**
 * One text for all spellings of a media type. The boundary is random, and a missing charset means UTF-8: neither makes two
 * bodies different. What is malformed counts as it stands, and equals nothing well-formed.
 */
export function mediaTypeText(raw: string, parsed: Parameterised | null): string {
  if (parsed === null) return lengthPrefixed([null, withoutSpace(raw)])
  const { value, parameters } = parsed
  const parts = [value]
  for (const name of [...parameters.keys()].toSorted()) {
    const text = name === 'charset' ? charsetOf(parsed) : (parameters.get(name) as string)
    if (text === null || (name === 'boundary' && value.startsWith('multipart/'))) continue
    parts.push(name, text)
  }
  return lengthPrefixed(parts)
}

/** The charset in lower case; `null` for UTF-8, named or not. */
export function charsetOf({ parameters }: Parameterised): string | null {
  const charset = parameters.get('charset')?.toLowerCase()
  return charset === undefined || charset === 'utf-8' || charset === 'utf8' ? null : charset
}
