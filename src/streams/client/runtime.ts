import type { Runtime } from '../../runtime/runtime.ts'
import { randomId } from '../parts/random-id.ts'

/** Time and chance of a client. The same words as in the ledger, without anything of Node. */
export type ClientRuntime = Omit<Runtime, 'soon'>

export function createClientRuntime(): ClientRuntime {
  return {
    monotonicMs: () => performance.now(),
    wallMs: () => Date.now(),
    setTimer(ms, fire) {
      const timer = setTimeout(fire, ms)
      return { cancel: () => clearTimeout(timer) }
    },
    random: Math.random,
    newId: randomId,
  }
}
