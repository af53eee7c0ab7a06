import { OnceError } from '../../core/errors.ts'
import type { StoreClock } from '../../store/port.ts'
import type { Core } from './core.ts'
import type { Bucket } from './names.ts'
import { scriptOf } from './script.ts'

const timeScript = scriptOf('no', '')
const advanceScript = scriptOf('maybe', `offset = offset + ARGV[4] call('SET', META, metaText())`)

/** The server's time, and an offset for tests that every bucket keeps. */
export function createClock(core: Core, testClock: boolean): StoreClock {
  const { buckets } = core.names
  return {
    now: (call) =>
      core.call(call, async (deadline) => (await core.run(timeScript, buckets[0] as Bucket, {}, deadline)).now),
    advance: async (ms, call) => {
      if (!testClock) {
        const how = 'with `testClock: true` or ONCEONLY_TEST_CLOCK=1'
        throw new OnceError('bad_option', `Only a store opened ${how} can move its time.`)
      }
      if (!Number.isSafeInteger(ms) || ms < 0) throw new OnceError('bad_option', '`ms` must be a non-negative integer.')
      await core.call(call, async (deadline) => {
        await Promise.all(buckets.map((bucket) => core.run(advanceScript, bucket, { args: [ms] }, deadline)))
      })
    },
  }
}
