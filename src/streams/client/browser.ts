/** For pages with several tabs: which of them has a place, and what closed ones left behind. */
export type { HoldOptions, PlaceHold } from './hold.ts'
export { holdPlace } from './hold.ts'
export { listIndexedDbPlaces, removeIndexedDbPlace } from './left-places.ts'
