import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Place } from './place.ts'
import { PIPE } from './stand.ts'
import type { Part } from './worker.ts'

/** A second process on the same store, which pauses before a named statement. */
export interface PausedProcess {
  /** Settles when it is paused in the part, or has ended it before that. */
  begin(part: Part, key: string): Promise<void>
  /** Resumes it, and returns its result. */
  goOn(): Promise<string>
}

export function startPaused(t: TestContext, place: Place): PausedProcess {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const worker = fileURLToPath(import.meta.resolve('./worker.ts'))
  const flags = ['--conditions=onceonly-source', '--disable-warning=ExperimentalWarning']
  const child = spawn(process.execPath, [...flags, worker, JSON.stringify(place)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'ipc'],
  })
  const pipe = child.stdio[PIPE] as Duplex
  t.after(() => void child.kill('SIGKILL'))
  let answer: Promise<[string]> | null = null
  return {
    async begin(part, key) {
      answer = once(child, 'message') as Promise<[string]>
      const stands = once(pipe, 'data')
      child.send({ part, key })
      await Promise.race([stands, answer])
    },
    async goOn() {
      pipe.write('!')
      const [result = 'nothing'] = (await answer) ?? []
      return result
    },
  }
}
