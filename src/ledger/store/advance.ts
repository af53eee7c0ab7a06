import { OnceError } from '../core/errors.ts'

/** What a store checks before a test moves its time. */
export function checkAdvance(ms: number, testClock: boolean): void {
  if (!testClock) {
    const how = 'with `testClock: true` or ONCEONLY_TEST_CLOCK=1'
    throw new OnceError('bad_option', `Only a store opened ${how} can move its time.`)
  }
  if (Number.isSafeInteger(ms) && ms >= 0) return
  throw new OnceError('bad_option', '`ms` must be a non-negative integer.')
}
