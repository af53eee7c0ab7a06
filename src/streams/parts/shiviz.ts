import { BaseError } from '../../ledger/core/base-error.ts'
import type { Counts } from './count.ts'
import { countOf } from './count.ts'

/** One event of a history. The clock counts every event of its host, its own included. */
export interface ShivizEvent {
  readonly host: string
  readonly clock: Counts
  readonly text: string
}

/** The regular expression under which ShiViz reads what `toShiViz` writes. */
export const shivizParser = String.raw`(?<host>\S*) (?<clock>{.*})\n(?<event>.*)`

/** A history as a log that the ShiViz viewer opens: host and clock on one line, the text on the next. */
export function toShiViz(history: readonly ShivizEvent[]): string {
  return history
    .map(({ host, clock, text }) => {
      if (/\s/.test(host) || host === '') throw new BaseError('bad_input', `ShiViz cannot name a host "${host}".`)
      return `${host} ${JSON.stringify(clock)}\n${text.replaceAll(/\s+/g, ' ').trim()}\n`
    })
    .join('')
}

/** Reads such a log, and refuses clocks that ShiViz refuses. */
export function fromShiViz(log: string): readonly ShivizEvent[] {
  const lines = log.split('\n')
  if (lines.at(-1) === '') lines.pop()
  if (lines.length % 2 !== 0) throw new BaseError('bad_input', 'The last event of the log has no text.')
  const history: ShivizEvent[] = []
  for (let line = 0; line < lines.length; line += 2)
    history.push(readEvent(lines[line] ?? '', lines[line + 1] ?? '', line + 1))
  checkClocks(history)
  return history
}

function readEvent(head: string, text: string, line: number): ShivizEvent {
  const [, host, clock] = /^(\S+) (\{.*\})$/.exec(head) ?? []
  if (host === undefined || clock === undefined) {
    throw new BaseError('bad_input', `Line ${line} of the log is not a host and its clock.`)
  }
  let counts: unknown
  try {
    counts = JSON.parse(clock)
  } catch (cause) {
    throw new BaseError('bad_input', `The clock of line ${line} is not JSON.`, { cause })
  }
  for (const [node, count] of Object.entries(counts as object)) {
    if (!Number.isSafeInteger(count) || (count as number) < 1) {
      throw new BaseError(
        'bad_input',
        `The clock of line ${line} counts ${String(count)} for ${node}; from 1 on is allowed.`,
      )
    }
  }
  return { host, clock: counts as Counts, text }
}

/** Every event of a host counts one more of its own, and none of a clock's events is missing from the log. */
function checkClocks(history: readonly ShivizEvent[]): void {
  const events = new Map<string, number>()
  for (const { host } of history) events.set(host, (events.get(host) ?? 0) + 1)
  const seen = new Map<string, Counts>()
  for (const { host, clock } of history) {
    const before = seen.get(host) ?? {}
    const own = countOf(clock, host)
    if (own !== countOf(before, host) + 1) {
      throw new BaseError('bad_input', `${host} counts its own event as ${own}, after ${countOf(before, host)}.`)
    }
    for (const [node, count] of Object.entries(before)) {
      if (countOf(clock, node) < count) throw new BaseError('bad_input', `${host} forgot events of ${node}.`)
    }
    for (const [node, count] of Object.entries(clock)) {
      if (count > (events.get(node) ?? 0)) {
        throw new BaseError('bad_input', `${host} has seen event ${count} of ${node}, which the log does not have.`)
      }
    }
    seen.set(host, clock)
  }
}
