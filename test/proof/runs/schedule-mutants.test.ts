import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apart } from '../apart/apart.ts'
import type { Mutant } from '../simulation/mutate.ts'
import type * as Notice from './notice.ts'

/** Each of them must be noticed in so many simulations, of so many days. */
const [SEEDS, DAYS] = [3, 3]

const scheduler = 'src/runs/scheduler.ts'
const ticks = 'src/runs/ticks.ts'

/** Rules of schedules, removed one at a time, with what is wrong then. */
const mutants: readonly (Mutant & { readonly wrong: RegExp })[] = [
  {
    name: 'the run of the tick before is not cancelled',
    file: scheduler,
    find: 'if (before !== null && before !== id &&',
    replace: 'if (false && before !== null && before !== id &&',
    wrong: /two runs of replaced at once/,
  },
  {
    name: 'a tick does not wait for the run of the tick before',
    file: scheduler,
    find: "if (before !== null && schedule.overlap === 'queue')",
    replace: 'if (false)',
    wrong: /(often|queued):.* is cancelled|two runs of (often|queued) at once/,
  },
  {
    name: 'of missed ticks only the last is started',
    file: ticks,
    find: "if (catchUp === 'all') return",
    replace: 'if (false) return',
    wrong: /often:.* was not started/,
  },
  {
    name: 'a missed tick is started although none are caught up with',
    file: ticks,
    find: "catchUp === 'last' || now - last <= MISSED_MS",
    replace: 'true',
    wrong: /fresh:.* began \d+ ms after its tick/,
  },
]

for (const { wrong, ...mutant } of mutants) {
  test(`days of schedules show when ${mutant.name}`, async (context) => {
    const module = import.meta.resolve('./notice.ts')
    const found = await apart<typeof Notice, 'noticeSchedules'>(module, 'noticeSchedules', mutant, SEEDS, DAYS)
    const noticed = found.find((text) => wrong.test(text))
    assert.ok(noticed !== undefined, `not noticed: ${JSON.stringify(found.slice(0, 5))}`)
    context.diagnostic(noticed)
  })
}
