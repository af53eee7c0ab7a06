/** `onceonly/region`: every key has one home among several regions, and only its home accepts it. */

export type { RegionRouter, RegionRouterOptions } from './region.ts'
export { createRegionRouter } from './region.ts'
export type { RegionAnswer, RegionHeaders, RegionRequest } from './send.ts'
