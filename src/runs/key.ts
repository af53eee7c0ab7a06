import { digestParts } from '../ledger/core/digest.ts'

/**
 * The key of one execution of a step: the same over retries, restarts and replays, because nothing but its place in the
 * run decides it. The path leads through named branches; the tick counts the executions of that path, from 0.
 */
export function stepKey(runId: string, stepId: string, tick: number): string {
  return digestParts([runId, stepId, String(tick)])
}

/** Digits of a step's key that the keys derived from it begin with: what a provider shows leads back to the step. */
export const DERIVED_KEY_DIGITS = 24

/** A key of its own for one part of a step, or for one definite attempt. */
export function derivedKey(key: string, name: string): string {
  return key.slice(0, DERIVED_KEY_DIGITS) + digestParts([key, name]).slice(DERIVED_KEY_DIGITS)
}

/** The path of a step or of a branch. */
export function pathOf(branch: string, name: string): string {
  return branch === '' ? name : `${branch}/${name}`
}
