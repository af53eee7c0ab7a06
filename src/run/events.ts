import type { RunState } from './entry.ts'

/** What an engine tells whoever listens: for logs, metrics and tests. */
export type RunEvent =
  | { readonly kind: 'started'; readonly runId: string; readonly definition: string }
  /** A worker put a run down: it ended, sleeps, or waits for a person. */
  | { readonly kind: 'left'; readonly runId: string; readonly state: RunState }
  /** Another worker has it, or a person took it away; whatever was under way records nothing. */
  | { readonly kind: 'lost'; readonly runId: string }
  | { readonly kind: 'background_failed'; readonly runId: string | null; readonly error: unknown }
