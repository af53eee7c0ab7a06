export { isThenable } from '../../runtime/runtime.ts'
