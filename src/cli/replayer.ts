import type { ChildProcess } from 'node:child_process'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { extname, join } from 'node:path'
import type { Entry, RunRow } from '../run/entry.ts'
import type { Replay } from '../run/replay.ts'
import { Usage } from './usage.ts'

export interface ReplayTask {
  readonly run: RunRow
  readonly entries: readonly Entry[]
  readonly ignore: readonly string[]
}

export type ReplayAnswer = { readonly replay: Replay } | { readonly error: string }

/** A process that evaluates: it has no environment of yours, so no credentials, and no network where that can be had. */
export interface Replayer {
  /** Whether the system gave it a network of its own, with nobody in it. */
  readonly isolated: boolean
  replay(task: ReplayTask): Promise<Replay>
  [Symbol.asyncDispose](): Promise<void>
}

/** What a process needs to start at all. */
const KEPT = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'NODE_OPTIONS', 'NO_COLOR']
/** A run that evaluates for longer waits for something that will never come. */
const LONGEST_REPLAY_MS = 60_000

export function startReplayer(configFile: string): Replayer {
  // Beside this file: a source while it is developed, built when it is published.
  const program = join(import.meta.dirname, `replay-process${extname(import.meta.filename)}`)
  const node = [process.execPath, ...process.execArgv.filter((arg) => !arg.startsWith('--test')), program, configFile]
  const isolated = canIsolate()
  const [name = process.execPath, ...args] = isolated ? ['unshare', '--net', '--map-root-user', ...node] : node
  const env = Object.fromEntries(
    KEPT.flatMap((key) => (process.env[key] === undefined ? [] : [[key, process.env[key]]])),
  )
  const child = spawn(name, args, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' })
  return {
    isolated,
    async replay(task) {
      const answered = answerOf(child)
      child.send(task)
      const answer = await answered
      if ('error' in answer) throw new Usage(answer.error)
      return answer.replay
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill()
      await ended
    },
  }
}

/** Asked once: whether this system lets us have a network of our own. */
function canIsolate(): boolean {
  if (process.platform !== 'linux') return false
  return spawnSync('unshare', ['--net', '--map-root-user', 'true'], { stdio: 'ignore', timeout: 5_000 }).status === 0
}

async function answerOf(child: ChildProcess): Promise<ReplayAnswer> {
  const listening = new AbortController()
  const { signal } = listening
  try {
    return await Promise.race([
      once(child, 'message', { signal }).then(([answer]) => answer as ReplayAnswer),
      once(child, 'exit', { signal }).then(
        ([code]): ReplayAnswer => ({ error: `The replaying process ended (${String(code)}).` }),
      ),
      new Promise<ReplayAnswer>((resolve) => {
        const timer = setTimeout(
          () => resolve({ error: `No replay within ${LONGEST_REPLAY_MS} ms.` }),
          LONGEST_REPLAY_MS,
        )
        signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
      }),
    ])
  } finally {
    listening.abort()
  }
}
