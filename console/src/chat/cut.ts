/**
 * The beginning of a text. Some characters take two units: half of one cannot be sent, nor stand in the name of a
 * database.
 */
export function beginningOf(text: string, unitsMost: number): string {
  const cut = text.slice(0, unitsMost)
  return cut.length < text.length ? cut.replace(/[\ud800-\udbff]$/, '') : cut
}
