/** What the body of a message of the chat holds. */
export interface Said {
  /** Of whoever says it, for people; who it really is, the identity of the message tells. */
  readonly name: string
  readonly text: string
}

/** Anybody with a key may send any JSON into a room; whatever it is, it is shown as text. */
export function saidOf(body: unknown): Said {
  const { by: name, text } = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  return {
    name: typeof name === 'string' && name.trim() !== '' ? name : 'Somebody',
    text: typeof text === 'string' ? text : (JSON.stringify(body) ?? ''),
  }
}

export function bodyOf({ name, text }: Said): unknown {
  return { by: name, text }
}

/** Of the five colours of the series, always the same one for a name. */
export function colourOf(name: string): 1 | 2 | 3 | 4 | 5 {
  let sum = 0
  for (const char of name) sum = (sum * 14 + (char.codePointAt(0) ?? 0)) % 9_973
  return ((sum % 5) + 1) as 1 | 2 | 3 | 4 | 5
}
