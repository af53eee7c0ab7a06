export type { PageAnswer, PageRequest, Pages } from './pages.ts'
export { readPages } from './pages.ts'
