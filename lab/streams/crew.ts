import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Form, SeedResult } from './form.ts'

/**
 * Runs seeds in several processes, and passes each result on, in the order in which they end, until `take` returns
 * false.
 */
export async function runSeeds(
  { from, seeds, workers, form }: { from: number; seeds: number; workers: number; form: Form },
  take: (result: SeedResult) => boolean,
): Promise<void> {
  let next = from
  let goesOn = true

  async function work(child: ChildProcess): Promise<void> {
    while (goesOn && next < from + seeds) {
      child.send(next++)
      const [result] = (await once(child, 'message')) as [SeedResult]
      goesOn &&= take(result)
    }
    child.disconnect()
  }

  const crew = Array.from({ length: Math.min(workers, seeds) }, () => open(form))
  try {
    // One that dies takes its seed along: that is no run without a failure.
    await Promise.race([Promise.all(crew.map(work)), ...crew.map(died)])
  } finally {
    for (const child of crew) child.kill()
  }
}

function open(form: Form): ChildProcess {
  const program = fileURLToPath(import.meta.resolve('./worker.ts'))
  return fork(program, [JSON.stringify(form)], { execArgv: ['--conditions=onceonly-source'] })
}

async function died(child: ChildProcess): Promise<never> {
  const [code] = (await once(child, 'exit')) as [number | null]
  // A process that has nothing left to do ends by itself.
  if (code === 0) return new Promise(() => {})
  throw new Error(`A process of the simulation ended with ${code}.`)
}
