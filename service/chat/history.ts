import type { Entry, Position } from 'onceonly/stream'
import { identityText } from 'onceonly/stream'
import type { Counts, ShivizEvent } from 'onceonly/stream/parts'
import type { OrderLog, RoomLog, StoredEntry } from 'onceonly/stream/server'
import { HISTORY_MESSAGES } from './words.ts'

/** A message, its final place where it has one, and which messages came before it, counted by sender. */
export interface HistoryMessage extends Entry {
  readonly final: number | null
  readonly clock: Counts
}

/** A few megabytes at the most, whatever people write. */
const HISTORY_BYTES = 2 * 1024 * 1024

/** What a region shows of a room, in its causal order. */
export async function readHistory(log: RoomLog, order: OrderLog, room: string): Promise<readonly HistoryMessage[]> {
  const entries = await newest(log, room)
  const rows = await order.places(room, entries)
  const places = new Map(rows.map((row) => [identityText(row), row.g]))
  const clocks = clocksOf(entries)
  return entries.flatMap(({ copy, at: _at, digest: _digest, ...entry }) => {
    const key = identityText(entry)
    return copy ? [] : [{ ...entry, final: places.get(key) ?? null, clock: clocks.get(key) ?? {} }]
  })
}

/** As many of the last as fit: what is older goes when it is too much. */
async function newest(log: RoomLog, room: string): Promise<readonly StoredEntry[]> {
  const { at: head } = await log.open(room)
  const kept: { readonly entry: StoredEntry; readonly bytes: number }[] = []
  let bytes = 0
  for (let after = Math.max(0, head - HISTORY_MESSAGES); after < head; ) {
    const read = await log.read(room, after, { entries: HISTORY_MESSAGES, bytes: HISTORY_BYTES })
    if (read.length === 0) break
    for (const entry of read) {
      after = entry.at
      const size = JSON.stringify(entry.body).length
      kept.push({ entry, bytes: size })
      for (bytes += size; bytes > HISTORY_BYTES && kept.length > 1; ) bytes -= kept.shift()?.bytes ?? 0
    }
  }
  return kept.map(({ entry }) => entry)
}

/** As ShiViz reads it: people are the hosts, and what they said are the events. */
export function eventsOf(messages: readonly HistoryMessage[]): readonly ShivizEvent[] {
  return messages.map(({ clock, ...message }) => ({ host: hostOf(message), clock, text: textOf(message.body) }))
}

function textOf(body: unknown): string {
  const text = typeof body === 'object' && body !== null && 'text' in body ? body.text : body
  return typeof text === 'string' ? text : JSON.stringify(text)
}

/** A client that had to begin again counts from 1 again, and so is another host. */
function hostOf({ client, epoch }: Pick<Entry, 'client' | 'epoch'>): string {
  return epoch === 1 ? client : `${client}.${epoch}`
}

/**
 * A vector over people, made of the vectors over regions: a client that had seen a log up to a number had seen every message in
 * it up to there, and what their senders had seen.
 */
function clocksOf(entries: readonly StoredEntry[]): ReadonlyMap<string, Counts> {
  const clocks = new Map<string, Counts>()
  const own = new Map<string, Counts>()
  /** By log and number: everything up to there, taken together. */
  const upTo = new Map<string, Counts>()
  const lastOf = new Map<string, Counts>()
  for (const entry of entries) {
    const key = identityText(entry)
    const host = hostOf(entry)
    let clock = clocks.get(key)
    if (clock === undefined) {
      const before = joined([own.get(host) ?? {}, ...seenClocks(entry.seen, upTo, lastOf)])
      clock = { ...before, [host]: (own.get(host)?.[host] ?? 0) + 1 }
      clocks.set(key, clock)
      own.set(host, clock)
    }
    const whole = joined([lastOf.get(entry.log) ?? {}, clock])
    lastOf.set(entry.log, whole)
    upTo.set(`${entry.log} ${entry.n}`, whole)
  }
  return clocks
}

function seenClocks(
  seen: Position,
  upTo: ReadonlyMap<string, Counts>,
  lastOf: ReadonlyMap<string, Counts>,
): readonly Counts[] {
  return Object.entries(seen).flatMap(([log, n]) => (lastOf.has(log) ? [upTo.get(`${log} ${n}`) ?? {}] : []))
}

function joined(all: readonly Counts[]): Counts {
  const most = new Map<string, number>()
  for (const counts of all) {
    for (const [host, count] of Object.entries(counts)) most.set(host, Math.max(most.get(host) ?? 0, count))
  }
  return Object.fromEntries(most)
}
