/** For pages with several tabs: which of them has a storage, and what closed ones left behind. */
export type { HoldOptions, StorageHold } from './hold.ts'
export { holdStorage } from './hold.ts'
export { listIndexedDbStorages, removeIndexedDbStorage } from './left-storages.ts'
