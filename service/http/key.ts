/** Long enough for any sensible key, short enough to index. */
const keyBytesMax = 255

type Key =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly detail: string }

/** Reads an Idempotency-Key: a structured-field string in quotes and a bare value are equal, because real clients send both. */
export function readKey(header: string | string[] | undefined): Key {
  if (header === undefined) return { kind: 'missing' }
  const text = (Array.isArray(header) ? header.join(', ') : header).trim()
  const quoted = /^"((?:[^"\\]|\\["\\])*)"(?:\s*;.*)?$/.exec(text)?.[1]
  const key = quoted === undefined ? text : quoted.replaceAll(/\\(["\\])/g, '$1')
  if (quoted === undefined && /[",]/.test(key))
    return { kind: 'invalid', detail: 'The header holds more than one key.' }
  if (!/^[\x20-\x7e]*$/.test(key)) return { kind: 'invalid', detail: 'A key is made of visible ASCII characters.' }
  if (key.trim() === '' || key.length > keyBytesMax) {
    return { kind: 'invalid', detail: `A key has 1 to ${keyBytesMax} characters.` }
  }
  return { kind: 'key', key }
}
