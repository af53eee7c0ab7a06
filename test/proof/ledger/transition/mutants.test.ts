import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rules } from '../../../support/ledger/transition/rules.ts'
import type { Machine, Scene } from '../../../support/ledger/transition/world.ts'
import { sceneOf } from '../../../support/ledger/transition/world.ts'
import { explore } from './explore.ts'
import { mutants } from './mutants.ts'

/** Small scenes first: a rule that is gone is usually missed within a few steps. */
const scenes: readonly ((machine: Machine) => Scene)[] = [
  (machine) => sceneOf(machine, 'hold', { processes: 2, attempts: 1, late: false }),
  (machine) => sceneOf(machine, 'rerun', { processes: 2, attempts: 1, late: false }),
  (machine) => sceneOf(machine, 'hold', { processes: 2, attempts: 1, reserve: true }),
  (machine) => sceneOf(machine, 'rerun', { processes: 1, attempts: 2, settlements: ['failed_retryable'] }),
]

/** Broken in a way that no history of claims and effects can show: only the answer itself is wrong. */
const onlyByRule = new Set([
  'a holder is not asked for its claim id',
  'another identity under the same id is let in',
  'a lease lapses without its grace',
  'an expired key is not refused',
  'a retryable failure is tried again at once',
  'a lost record stays lost',
  'a contradiction is not reported',
  'two may probe at once',
  'a probe that lost its turn may resolve',
  "an operator's fence is not compared",
  'a business value goes to the last claim',
])

function byExplorer(machine: Machine): string | null {
  for (const scene of scenes) {
    const { violation } = explore(scene(machine))
    if (violation !== null) return `${violation.what}, after: ${violation.path.join('; ')}`
  }
  return null
}

function byRules(machine: Machine): string[] {
  return Object.entries(rules).flatMap(([name, check]) => {
    try {
      check(machine)
      return []
    } catch {
      return [name]
    }
  })
}

for (const [name, machine] of Object.entries(mutants)) {
  test(`it is noticed when ${name}`, () => {
    const broken = byRules(machine)
    const found = byExplorer(machine)
    assert.ok(broken.length > 0, 'no rule noticed it')
    assert.ok(found !== null || onlyByRule.has(name), 'the explorer noticed nothing')
  })
}
