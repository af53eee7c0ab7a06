import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** What a command did, as its caller sees it. */
export interface Ended {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** One process for many commands, because starting one takes longer than most of them. */
export interface Commands extends AsyncDisposable {
  run(...args: string[]): Promise<Ended>
}

export function startCommands(cwd: string, env: NodeJS.ProcessEnv): Commands {
  const child: ChildProcess = fork(new URL('./commands-process.ts', import.meta.url), {
    cwd,
    env,
    execArgv: ['--conditions=onceonly-source'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  return {
    async run(...args) {
      const answered = once(child, 'message')
      child.send(args)
      const [ended] = (await answered) as [Ended]
      return ended
    },
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit')
      child.disconnect()
      await gone
    },
  }
}
