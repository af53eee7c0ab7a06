export type { Guard, GuardEvent, GuardedAttempt, GuardOptions, Verdict } from './guard.ts'
export { createGuard } from './guard.ts'
