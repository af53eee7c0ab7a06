/** One attribute as people write it in a filter: `customer=c-1`; a text that reads like something else is quoted. */
export function attributeText(name: string, value: string | number | boolean): string {
  const isPlain = typeof value === 'string' && value.trim() === value && valueOf(value) === value
  return `${name}=${isPlain ? value : JSON.stringify(value)}`
}

/** What the server takes: JSON. Several attributes are written as JSON in the filter, too. */
export function attributesOf(text: string): string {
  const at = text.indexOf('=')
  if (text.startsWith('{') || at < 1) return text
  return JSON.stringify({ [text.slice(0, at).trim()]: valueOf(text.slice(at + 1).trim()) })
}

function valueOf(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' ? text : value
  } catch {
    return text
  }
}
