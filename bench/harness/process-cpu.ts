import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Places in `/proc/PID/stat`, counted from after the name, which may contain anything. */
const PARENT = 1
const USER = 11
const SYSTEM = 12
const ENDED_CHILDREN_USER = 13
const ENDED_CHILDREN_SYSTEM = 14

/**
 * The CPU time, in milliseconds, of a process, of its living children, and of those that have ended. PostgreSQL is a process
 * for every connection, so that the time of one process alone would mean nothing.
 */
export function createCpuMeter(pid: number): () => number {
  const ticksPerS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  return () => {
    let ticks = 0
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue
      const fields = statOf(name)
      if (fields === null || (name !== String(pid) && Number(fields[PARENT]) !== pid)) continue
      for (const place of [USER, SYSTEM, ENDED_CHILDREN_USER, ENDED_CHILDREN_SYSTEM]) ticks += Number(fields[place])
    }
    return (ticks / ticksPerS) * 1_000
  }
}

function statOf(pid: string): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    // It has ended since the folder was read.
    return null
  }
}
