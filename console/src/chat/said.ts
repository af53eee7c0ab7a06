import { beginningOf } from './cut.ts'

/** What the body of a message of the chat holds. */
export interface Said {
  /** The name of the author, for display; the identity of the message says who it really is. */
  readonly name: string
  readonly text: string
  /** The beginning of what it replies to, for readers who do not have that any more; null where it is no reply. */
  readonly quote: Quote | null
}

export interface Quote {
  readonly name: string
  readonly text: string
}

/** Of what stands before every message; those who call themselves longer are cut. */
export const NAME_CHARS_MOST = 40
/** Enough to recognise a message by, little enough to stand in every reply to it. */
const QUOTE_CHARS_MOST = 120

/** A client with a key may send any JSON into a room; it is shown as text. */
export function saidOf(body: unknown): Said {
  const { by: name, text, quote } = membersOf(body)
  return {
    name: typeof name === 'string' && name.trim() !== '' ? beginningOf(name, NAME_CHARS_MOST) : 'Unnamed',
    text: typeof text === 'string' ? text : (JSON.stringify(body) ?? ''),
    quote: quoteIn(quote),
  }
}

export function bodyOf({ name, text, quote }: Said): unknown {
  return quote === null ? { by: name, text } : { by: name, text, quote: { by: quote.name, text: quote.text } }
}

export function quoteOf({ name, text }: Pick<Said, 'name' | 'text'>): Quote {
  const [line = ''] = text.split('\n')
  const by = beginningOf(name, NAME_CHARS_MOST)
  return { name: by, text: line.length > QUOTE_CHARS_MOST ? `${beginningOf(line, QUOTE_CHARS_MOST - 1)}…` : line }
}

function quoteIn(quote: unknown): Quote | null {
  const { by: name, text } = membersOf(quote)
  return typeof name === 'string' && typeof text === 'string' ? quoteOf({ name, text }) : null
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** Of the five colours of the series, always the same one for a name. */
export function colourOf(name: string): 1 | 2 | 3 | 4 | 5 {
  let sum = 0
  for (const char of name) sum = (sum * 14 + (char.codePointAt(0) ?? 0)) % 9_973
  return ((sum % 5) + 1) as 1 | 2 | 3 | 4 | 5
}
