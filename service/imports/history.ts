import type { SagaHistoryEntry } from 'onceonly/saga'
import Type, { type Static } from 'typebox'
import { oneOf } from '../http/input.ts'
import { count, instant, list, named, record, text } from '../openapi/declaration.ts'

/** One line of an import's history: what came, in which state, and what was done. */
export const historyEvent = named(
  'ImportEvent',
  record({
    at: instant,
    event: text,
    state: text,
    outcome: oneOf(['handled', 'ignored', 'deferred']),
    path: list(text, { description: 'The states that the import went through.' }),
    sent: Type.Unsafe<Readonly<Record<string, number>>>({
      type: 'object',
      description: 'What was sent, by topic.',
      additionalProperties: count,
    }),
    notes: list(text, { description: 'Why it was ignored, and what was odd.' }),
  }),
)
export type HistoryView = Static<typeof historyEvent>

export function historyView(entry: SagaHistoryEntry): HistoryView {
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
