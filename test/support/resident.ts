import { readFileSync } from 'node:fs'

/** The memory that a process holds now, in mebibytes. */
export function residentMib(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1_024
}
