import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { createInterface } from 'node:readline'

/** A server that a side started in a process of its own, so that the CPU time of its callers is none of its own. */
export interface Served extends AsyncDisposable {
  readonly port: number
  readonly pid: number
}

export interface ServedOptions {
  /** The path of the program. It prints its address, serves, and ends by itself on SIGTERM. */
  readonly program: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export async function serve({ program, args = [], env = {} }: ServedOptions): Promise<Served> {
  // The same flags as ours. A profile, if one is wanted, goes into a file of its own.
  const own = `-${basename(program, '.ts')}.cpuprofile`
  const flags = process.execArgv.map((flag) => flag.replace(/\.cpuprofile$/, own))
  const child = spawn(process.execPath, [...flags, program, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // However this process ends, its server does not outlive it.
  const abandon = () => void child.kill('SIGKILL')
  const terminate = () => process.exit(1)
  process.once('exit', abandon).once('SIGTERM', terminate)
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const port = new Promise<number>((resolve, reject) => {
    lines.on('line', (line) => {
      const found = /http:\/\/[^:\s]+:(\d+)/.exec(line)?.[1]
      if (found !== undefined) resolve(Number(found))
    })
    void exited.then(() => reject(new Error(`${program} ended before it listened.`)))
  })
  return {
    port: await port,
    pid: child.pid as number,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      const [status] = (await exited) as [number | null]
      process.off('exit', abandon).off('SIGTERM', terminate)
      if (status !== 0) throw new Error(`${program} ended with ${status}.`)
    },
  }
}
