import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apart } from '../apart/apart.ts'
import type * as Schedules from './simulation/schedules.ts'

const SEEDS = 2

test('each tick of ten days starts one run, over three processes that crash and a clock that jumps both ways', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const module = import.meta.resolve('./simulation/schedules.ts')
    const found = await apart<typeof Schedules, 'simulateSchedules'>(module, 'simulateSchedules', seed)
    assert.deepEqual(found.wrong, [], `seed ${seed}`)
    assert.ok(found.ticks > 480 && found.jumps > 10 && found.crashes > 20, JSON.stringify(found))
  }
})
