import { DAY } from 'onceonly'
import { limits } from '../../../../src/ledger/core/limits.ts'
import { createRuntime, type Runtime } from '../../../../src/runtime/runtime.ts'
import { until } from '../../../../src/testing/until.ts'
import { cancelled, handled, onEveryStage, started } from '../../../support/events/saga/stage.ts'

const real = createRuntime()
/** The sweep comes at once. What bounds an effect or a transaction is shorter than its pause, and stays as it is. */
const hasty: Runtime = {
  ...real,
  setTimer: (ms, fire, background) => real.setTimer(ms < limits.sweepEveryMs / 2 ? ms : 20, fire, background),
}

onEveryStage('by itself: a finished instance is removed after its seven days', async ({ place, replica }) => {
  const one = replica({}, { background: true, runtime: hasty })
  await handled(one, started('s1'), cancelled('s1'))
  await place.advance(8 * DAY)
  await until('its tombstone is gone', async () => (await one.saga.get('s1')) === null)
})
