export type { Guard, GuardEvent, GuardOptions, Verdict } from './guard.ts'
export { createGuard } from './guard.ts'
