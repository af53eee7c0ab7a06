/** As much of an event as a person at a terminal wants to see. */
interface Line {
  readonly level: string
  readonly time: string
  readonly event?: string
  readonly msg?: string
  readonly method?: string | null
  readonly route?: string | null
  readonly status?: number | null
  readonly durationMs?: number | null
  readonly decision?: string | null
  readonly err?: { readonly stack?: string; readonly message?: string }
}

const TIME_FROM = 'yyyy-mm-ddT'.length
const TIME_TO = TIME_FROM + 'hh:mm:ss'.length
const RED = '\x1b[31m'
const YELLOW = '\x1b[33m'
const DIM = '\x1b[2m'
const PLAIN = '\x1b[0m'

/** Turns lines of JSON into lines for a person. */
export function prettyLines(out: { write(text: string): unknown }): { write(line: string): void } {
  return { write: (line) => void out.write(`${pretty(JSON.parse(line) as Line)}\n`) }
}

export function pretty(line: Line): string {
  const time = `${DIM}${line.time.slice(TIME_FROM, TIME_TO)}${PLAIN}`
  if (line.method !== undefined) {
    const { method, route, status, durationMs, decision } = line
    const about = decision === null || decision === undefined ? '' : ` ${DIM}${decision}${PLAIN}`
    const took = durationMs === null || durationMs === undefined ? '' : ` ${DIM}${durationMs} ms${PLAIN}`
    return `${time} ${method ?? '?'} ${route ?? '?'} ${coloured(status ?? 0)}${took}${about}`
  }
  const colour = line.level === 'warn' ? YELLOW : line.level === 'error' || line.level === 'fatal' ? RED : ''
  const trace = line.err === undefined ? '' : `\n${line.err.stack ?? line.err.message ?? ''}`
  return `${time} ${colour}${line.level}${PLAIN} ${line.msg ?? line.event ?? ''}${trace}`
}

function coloured(status: number): string {
  if (status === 0) return `${YELLOW}hung up${PLAIN}`
  return status >= 500 ? `${RED}${status}${PLAIN}` : String(status)
}
