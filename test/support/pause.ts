import { readdirSync, readFileSync } from 'node:fs'
import { until } from '../../src/testing/until.ts'

/** Pauses a server with all its processes. The signal is asynchronous: a thread on another core still runs for a moment. */
export async function pause(group: number): Promise<void> {
  process.kill(-group, 'SIGSTOP')
  await until('every thread of the server is stopped', () => statesOf(group).every((state) => state === 'T'))
}

/** The same for one process. */
export async function pauseOne(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await until('every thread of the process is stopped', () => threadsOf(pid).every((state) => state === 'T'))
}

export function resume(group: number): void {
  process.kill(-group, 'SIGCONT')
}

/** The states of all threads of a process group, as the system lists them. */
function statesOf(group: number): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        if (fieldsOf(`/proc/${pid}/stat`)[2] !== String(group)) return []
        return threadsOf(Number(pid))
      } catch {
        // It ended while we looked.
        return []
      }
    })
}

function threadsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((task) => fieldsOf(`/proc/${pid}/task/${task}/stat`)[0] ?? '')
}

/** What follows the name, which is in parentheses and may hold anything: state, parent, group, … */
function fieldsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}
