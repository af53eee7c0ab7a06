import { checkAdvance } from '../../store/advance.ts'
import type { StoreClock } from '../../store/port.ts'
import { EVERY_TOPIC } from '../../store/sql.ts'
import { nowOf } from './clock.ts'
import type { Engine } from './engine.ts'

export function createStoreClock(engine: Engine, testClock: boolean): StoreClock {
  return {
    now: (call) => engine.read(call, (reader) => nowOf(reader.meta.clock(), engine.clock)),
    advance: async (ms, call) => {
      checkAdvance(ms, testClock)
      await engine.write('batch', call, (writer) => {
        writer.meta.addOffset(ms)
        writer.woken.add(EVERY_TOPIC)
      })
    },
  }
}
