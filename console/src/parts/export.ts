/** One table of all rows, as spreadsheets read it (RFC 4180). */
export function csvOf(rows: readonly unknown[]): string {
  const flat = rows.map((row) => new Map(cellsOf(row, '')))
  const names = [...new Set(flat.flatMap((cells) => [...cells.keys()]))]
  const lines = [names, ...flat.map((cells) => names.map((name) => cells.get(name)))]
  return lines.map((line) => `${line.map(cellText).join(',')}\r\n`).join('')
}

function cellsOf(value: unknown, name: string): readonly (readonly [string, unknown])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value]]
  return Object.entries(value).flatMap(([each, inner]) => cellsOf(inner, name === '' ? each : `${name}.${each}`))
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') return quoted(JSON.stringify(value))
  // Spreadsheets run what begins like a formula, and keys are chosen by strangers.
  return quoted(/^[=+\-@\t\r]/.test(value) ? `'${value}` : value)
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Hands a file to the reader's browser. */
export function saveFile(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser has taken the file by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
