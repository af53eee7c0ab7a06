export { isThenable } from '../../runtime/thenable.ts'
