import { OnceError } from '../../core/errors.ts'
import type { StoreClock } from '../../store/port.ts'
import type { Engine } from './engine.ts'
import { nowOf } from './meta.ts'

export function createStoreClock(engine: Engine, testClock: boolean): StoreClock {
  return {
    now: (call) => engine.read(call, (reader) => nowOf(reader.meta.read(), engine.time)),
    advance: async (ms, call) => {
      if (!testClock) {
        throw new OnceError(
          'bad_option',
          'Only a store with `testClock: true`, or with ONCEONLY_TEST_CLOCK=1, can move its time.',
        )
      }
      if (!Number.isSafeInteger(ms) || ms < 0) throw new OnceError('bad_option', 'Time moves forward, by whole ms.')
      await engine.write('batch', call, (writer) => writer.meta.addOffset(ms))
    },
  }
}
