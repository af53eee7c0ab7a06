import type { HistoryEntry } from 'onceonly/saga'

/** One line of an import's history: what came, in which state, and what was done. */
export interface HistoryView {
  readonly at: string
  readonly event: string
  readonly state: string
  readonly outcome: 'handled' | 'ignored' | 'deferred'
  /** The states that it went through. */
  readonly path: readonly string[]
  /** What was sent, by topic and count. */
  readonly sent: Readonly<Record<string, number>>
  /** Why it was ignored, and what was odd. */
  readonly notes: readonly string[]
}

export function historyView(entry: HistoryEntry): HistoryView {
  const { event, state, did } = entry
  const base = { at: new Date(entry.at).toISOString(), event, state, outcome: did, path: [], sent: {}, notes: [] }
  switch (entry.did) {
    case 'handled': {
      const sent = Object.fromEntries(entry.emitted.map(({ topic, count }) => [topic, count]))
      return { ...base, path: entry.path, sent, notes: entry.warnings }
    }
    case 'ignored':
      return { ...base, notes: [entry.because === null ? entry.why : `${entry.why}: ${entry.because}`] }
    case 'deferred':
      return base
  }
}
