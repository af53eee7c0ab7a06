/** `onceonly/region`: every key has one home among several regions, and only its home accepts it. */

export type { Region, RegionOptions } from './region.ts'
export { createRegion } from './region.ts'
export type { RegionAnswer, RegionHeaders, RegionRequest } from './send.ts'
