/** Text that is HTML already, so that it is not escaped again. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | null | readonly Part[]

/** HTML with everything that is put into it escaped. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((string, at) => string + written(parts[at] ?? null)).join(''))
}

function written(part: Part): string {
  if (part === null) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part))
  return part.map(written).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char)
}

/** Plain sentences with `code` in them, as descriptions are written. */
export function prose(text: string): Html {
  return new Html(escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>'))
}

/** Styles and scripts of ours, which no entity may change. */
export function raw(text: string): Html {
  return new Html(text)
}
