import { Worker } from 'node:worker_threads'

export interface Work {
  readonly module: string
  readonly name: string
  readonly args: readonly unknown[]
}

/**
 * Calls an exported function of a module in a thread of its own, and returns its result. The test runner follows
 * every promise of the thread in which it runs, which takes longer than a simulation that makes millions of them.
 */
export function apart<Module extends Record<Name, (...args: never[]) => unknown>, Name extends string>(
  module: string,
  name: Name,
  ...args: Parameters<Module[Name]>
): Promise<Awaited<ReturnType<Module[Name]>>> {
  const workerData: Work = { module, name, args }
  const thread = new Worker(new URL('./thread.ts', import.meta.url), { workerData })
  return new Promise((resolve, reject) => {
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', (code) => reject(new Error(`The thread of ${name} ended with ${code} and without an answer`)))
  })
}
