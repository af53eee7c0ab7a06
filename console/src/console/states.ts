import type { Tone } from '../parts/badge.tsx'
import type { Card } from './api.ts'

/** The word and the colour of each state of a record. */
export const recordStates: Readonly<Record<Card['state'], { readonly word: string; readonly tone: Tone }>> = {
  in_progress: { word: 'in progress', tone: 'calm' },
  succeeded: { word: 'succeeded', tone: 'good' },
  failed_terminal: { word: 'failed', tone: 'bad' },
  failed_retryable: { word: 'failed, retryable', tone: 'wait' },
  unknown: { word: 'unknown', tone: 'doubt' },
  vacant: { word: 'released', tone: 'plain' },
}

/** Of runs and of their steps. */
const runTones: Readonly<Record<string, Tone>> = {
  succeeded: 'good',
  running: 'calm',
  sleeping: 'calm',
  intent: 'calm',
  waiting: 'calm',
  retrying: 'wait',
  failed: 'bad',
  unknown: 'doubt',
  cancelled: 'plain',
  abandoned: 'plain',
}

export function runTone(state: string): Tone {
  return runTones[state] ?? 'plain'
}

/** Of an instance of a saga. */
export function instanceTone(state: string, completedAt: number | null, failed: readonly string[] = []): Tone {
  if (failed.includes(state)) return 'bad'
  return completedAt === null ? 'calm' : 'good'
}

/** Of whatever a search has found. */
export function findTone(state: string): Tone {
  return recordStates[state as Card['state']]?.tone ?? runTone(state)
}
