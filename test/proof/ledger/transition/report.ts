import assert from 'node:assert/strict'
import { transition } from '../../../../src/ledger/core/transition.ts'
import type { Scene } from '../../../support/ledger/transition/world.ts'
import { sceneOf } from '../../../support/ledger/transition/world.ts'
import { explore } from './explore.ts'

/** What a scene must have come across, or it explored less than it says. */
const everywhere = [
  'state absent',
  'state in_progress',
  'state succeeded',
  'state failed_retryable',
  'state unknown',
  'state vacant',
  'loses the answer to its claim',
  'loses the answer to its release',
  'loses the answer to its renew',
  'loses the answer to its settle',
  'crashes',
  'is answered in_progress',
  'is answered first_attempt',
  'is answered replay_success',
  'the reconciler looks: lapsed',
]

/** Explores a scene to its last world and says how many there were; a broken promise is reported with the path to it. */
export function exploreAll(
  policy: Scene['policy']['onAbandoned'],
  options: Partial<Scene>,
  also: readonly string[] = [],
): void {
  const startedMs = performance.now()
  const { worlds, steps, seen, violation } = explore(sceneOf(transition, policy, options))
  assert.equal(violation, null, `${violation?.what}:\n  ${violation?.path.join('\n  ')}`)
  for (const what of [...everywhere, ...also]) assert.ok(seen.has(what), `never seen: ${what}`)
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
  console.log(`${policy}: ${worlds} worlds, ${steps} steps, ${seconds} s (${JSON.stringify(options)})`)
}
