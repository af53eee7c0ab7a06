export type { Awaitable } from '../../runtime/runtime.ts'
export { isThenable } from '../../runtime/runtime.ts'
