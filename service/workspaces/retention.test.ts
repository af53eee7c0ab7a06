import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../logs.ts'
import { type Sweep, startRetention } from './retention.ts'

const log = createLog({ logLevel: 'silent' })
const due = async (sweeps: readonly Sweep[]) => sweeps

test('a sweep continues while there is more, one that fails is retried, and others continue meanwhile', async () => {
  const steps: string[] = []
  const secondRound = Promise.withResolvers<void>()
  let left = 3
  const retention = startRetention({
    sweeps: [
      {
        name: 'broken',
        step: async () => {
          if (steps.includes('broken')) secondRound.resolve()
          steps.push('broken')
          throw new Error('away')
        },
      },
      {
        name: 'large',
        step: async () => {
          steps.push('large')
          return { removed: 1, more: --left > 0 }
        },
      },
    ],
    due,
    everyMs: 1,
    log,
  })
  await secondRound.promise
  await retention.stop()
  assert.deepEqual(steps.slice(0, 5), ['broken', 'large', 'large', 'large', 'broken'])
  const { length } = steps
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(steps.length, length)
})

test('stopping does not wait for the next look, nor for the rest of a large sweep', async () => {
  const idle = startRetention({ sweeps: [], due, everyMs: 3_600_000, log })
  await idle.stop()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const endless = { name: 'endless', step: async () => (begin(), { removed: 1, more: true }) }
  const busy = startRetention({ sweeps: [endless], due, everyMs: 1, log })
  await begun
  await busy.stop()
})

test('a sweep begins only where something may be past its retention, and a look that fails is made again', async () => {
  const steps: string[] = []
  const { promise: third, resolve } = Promise.withResolvers<void>()
  const sweep = (name: string): Sweep => ({ name, step: async () => (steps.push(name), { removed: 0, more: false }) })
  let looks = 0
  const retention = startRetention({
    sweeps: [sweep('messages'), sweep('leads')],
    async due(sweeps) {
      looks++
      if (looks === 1) throw new Error('away')
      if (looks === 4) resolve()
      return sweeps.filter(({ name }) => looks === 3 && name === 'leads')
    },
    everyMs: 1,
    log,
  })
  await third
  await retention.stop()
  assert.deepEqual(steps, ['leads'])
})
