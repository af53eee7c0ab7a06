import type { EntryState, Replay, ReplayStep, RunState } from 'onceonly/run'

/** Words that clients read, held to those of the engine. */
export const runStates = [
  'queued',
  'running',
  'sleeping',
  'succeeded',
  'failed',
  'unknown',
  'cancelled',
] as const satisfies readonly RunState[]

export const stepStates = [
  'intent',
  'retrying',
  'waiting',
  'unknown',
  'succeeded',
  'failed',
  'abandoned',
] as const satisfies readonly EntryState[]

export const stepStatuses = [
  'same',
  'changed',
  'added',
  'removed',
  'moved',
  'pending',
  'unreached',
] as const satisfies readonly ReplayStep['status'][]

export const verdicts = [
  'identical',
  'identical-but-for-ignored-paths',
  'diverged',
] as const satisfies readonly Replay['verdict'][]

/** Runs of one page. */
export const LIMIT_MOST = 100
export const LIMIT_USUAL = 50
