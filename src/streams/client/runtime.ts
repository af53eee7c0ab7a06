import type { Runtime } from '../../runtime/runtime.ts'

/** Time and chance of a client. The same words as in the ledger, without anything of Node. */
export type ClientRuntime = Omit<Runtime, 'soon'>

const ID_BYTES = 16

export function createClientRuntime(): ClientRuntime {
  return {
    monotonicMs: () => performance.now(),
    wallMs: () => Date.now(),
    setTimer(ms, fire) {
      const timer = setTimeout(fire, ms)
      return { cancel: () => clearTimeout(timer) }
    },
    random: Math.random,
    newId() {
      const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES))
      return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
    },
  }
}
