import type { ChildProcess } from 'node:child_process'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { limits } from '../../ledger/core/limits.ts'
import type { Entry, RunRow } from '../../runs/entry.ts'
import type { Replay } from '../../runs/replay.ts'
import { Usage } from './usage.ts'

export interface ReplayTask {
  readonly run: RunRow
  readonly entries: readonly Entry[]
  readonly ignore: readonly string[]
}

export type ReplayAnswer =
  | { readonly kind: 'replayed'; readonly replay: Replay }
  /** This run cannot be replayed. */
  | { readonly kind: 'refused'; readonly error: string }

type Answer = ReplayAnswer | { readonly kind: 'late' | 'ended'; readonly error: string }

/** A process that evaluates: it has no environment of yours, so no credentials, and no network where that can be had. */
export interface Replayer {
  /** Whether the system gave it an empty network of its own. */
  readonly isolated: boolean
  /** Rejects with `Usage` when this run cannot be replayed; the next one may be. */
  replay(task: ReplayTask): Promise<Replay>
  [Symbol.asyncDispose](): Promise<void>
}

/** What a process needs to start at all. */
const KEPT = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'NODE_OPTIONS', 'NO_COLOR']
/** The process ends by itself what awaits for too long; only one that never comes to rest has to be ended. */
const LONGEST_REPLAY_MS = 2 * limits.runEvaluateMs
/** What an earlier run left behind may have ended the process; what ends a second one is this run. */
const TRIES = 2

export function startReplayer(configFile: string): Replayer {
  // Beside this file: a source while it is developed, built when it is published.
  const program = join(import.meta.dirname, `replay-process${extname(import.meta.filename)}`)
  const node = [process.execPath, ...process.execArgv.filter((arg) => !arg.startsWith('--test')), program, configFile]
  const isolated = canIsolate()
  const [name = process.execPath, ...args] = isolated ? ['unshare', '--net', '--map-root-user', ...node] : node
  const env = Object.fromEntries(
    KEPT.flatMap((key) => (process.env[key] === undefined ? [] : [[key, process.env[key]]])),
  )
  // Whatever the code prints stands beside the answers: those may be read by a program.
  const start = () =>
    spawn(name, args, { env, stdio: ['ignore', 2, 2, 'ipc'], serialization: 'advanced' }).on('error', () => {})
  let child: ChildProcess | null = null
  async function end(): Promise<void> {
    const ending = child
    child = null
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = once(ending, 'exit')
    // It only computes, and may be in an endless loop.
    ending.kill('SIGKILL')
    await ended
  }
  return {
    isolated,
    async replay(task) {
      for (let tries = 1; ; tries++) {
        child ??= start()
        const answer = await answerOf(child, task)
        if (answer.kind === 'replayed') return answer.replay
        if (answer.kind === 'refused') throw new Usage(answer.error)
        await end()
        if (answer.kind === 'late' || tries === TRIES) throw new Usage(answer.error)
      }
    },
    [Symbol.asyncDispose]: end,
  }
}

/** Whether the system allows a process with a network of its own. */
function canIsolate(): boolean {
  if (process.platform !== 'linux') return false
  return spawnSync('unshare', ['--net', '--map-root-user', 'true'], { stdio: 'ignore', timeout: 5_000 }).status === 0
}

async function answerOf(child: ChildProcess, task: ReplayTask): Promise<Answer> {
  const answer = Promise.withResolvers<Answer>()
  const onMessage = (message: unknown) => answer.resolve(message as ReplayAnswer)
  const ended = (code: number | null) =>
    answer.resolve({ kind: 'ended', error: `The replaying process ended (${String(code)}).` })
  const timer = setTimeout(
    () => answer.resolve({ kind: 'late', error: `No replay within ${LONGEST_REPLAY_MS} ms.` }),
    LONGEST_REPLAY_MS,
  )
  const broken = () => ended(child.exitCode)
  child.on('message', onMessage).on('exit', ended).on('error', broken)
  try {
    // Sending fails where the process has ended meanwhile.
    child.send(task, (error) => (error === null ? undefined : broken()))
    return await answer.promise
  } finally {
    clearTimeout(timer)
    child.off('message', onMessage).off('exit', ended).off('error', broken)
  }
}
