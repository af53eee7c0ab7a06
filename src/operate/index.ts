export type { Standing } from './standing.ts'
export { createStanding } from './standing.ts'
