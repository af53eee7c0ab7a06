import { chownSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { NODE_ENDED_BOUND_MS, READY_POLL_MS } from './limits.ts'
import type { StopSignal } from './supervisor.ts'
import { supervise } from './supervisor.ts'

/** One process of a cluster, whose ports and files the cluster knows before it starts. */
export interface NodeSpec {
  readonly name: string
  /** Made if it is missing; removed with the node. */
  readonly folder: string
  /** Written into the folder before the first start. */
  readonly files?: Readonly<Record<string, string>>
  /** A shell script that runs in the folder and ends in `exec server`, or waits for what it started. */
  readonly script: string
  readonly owner: { readonly uid: number; readonly gid: number } | undefined
  readonly stopSignal: StopSignal
}

/** A node that a test or a laboratory can harm. */
export interface ClusterNode {
  readonly name: string
  readonly folder: string
  /** Ends every process of the node at once, as a power failure would. What it wrote stays. */
  kill(): Promise<void>
  /** Freezes every process of the node, as a hypervisor would; its connections stay open. */
  pause(): Promise<void>
  resume(): void
  /** After `kill`: starts it again with what it had. */
  revive(): Promise<void>
  /** The end of its log, for an error. */
  log(lines?: number): string
  stop(): Promise<void>
}

export async function startNode(spec: NodeSpec): Promise<ClusterNode> {
  const { name, folder, files = {}, script, owner, stopSignal } = spec
  mkdirSync(folder, { recursive: true })
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(folder, file), text, { mode: 0o600 })
    if (owner !== undefined) chownSync(join(folder, file), owner.uid, owner.gid)
  }
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const run = { script, folder, owner, stopSignal }
  let supervised = await supervise(run)
  const signal = (what: NodeJS.Signals) => {
    for (const pid of processesIn(folder)) sendTo(pid, what)
  }

  return {
    name,
    folder,
    async kill() {
      const deadlineMs = performance.now() + NODE_ENDED_BOUND_MS
      // More than once: a process may start another one while it is being killed.
      while (processesIn(folder).length > 0) {
        if (performance.now() > deadlineMs) throw new Error(`${name} did not end within ${NODE_ENDED_BOUND_MS} ms.`)
        signal('SIGKILL')
        await sleep(READY_POLL_MS)
      }
    },
    async pause() {
      // Twice: the first round may miss what was being started.
      signal('SIGSTOP')
      await sleep(READY_POLL_MS)
      signal('SIGSTOP')
    },
    resume: () => signal('SIGCONT'),
    async revive() {
      const ended = supervised
      await ended.halt()
      supervised = await supervise(run)
      await ended.release()
    },
    log: (lines = 15) => {
      try {
        return readFileSync(join(folder, 'log'), 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
      } catch {
        return '(there is no log)'
      }
    },
    async stop() {
      signal('SIGCONT')
      await supervised.stop()
    },
  }
}

/**
 * Every process that works in a folder or below it. Servers stay in the folder that they are started in, and so do the
 * helpers that leave their process group, such as the PostgreSQL of a Patroni.
 */
function processesIn(folder: string): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      const place = workingFolder(pid)
      return place === folder || place.startsWith(`${folder}/`)
    })
    .map(Number)
}

function workingFolder(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    // It ended meanwhile, or is a zombie.
    return ''
  }
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended meanwhile.
  }
}
