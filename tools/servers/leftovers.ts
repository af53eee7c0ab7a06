import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long tests wait for a server that lost its parent; it is gone within a tenth of a second on an idle machine. */
const GONE_BOUND_MS = 15_000
const GONE_POLL_MS = 20

/**
 * What is left of a private server: its folder, and every process that was started with the folder in its arguments.
 * After `stop()` that is nothing, at once.
 */
export function leftovers(folder: string): string[] {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandLine(pid).includes(folder))
    .map((pid) => `process ${pid}: ${commandLine(pid).replaceAll('\0', ' ')}`)
  return existsSync(folder) ? [`folder ${folder}`, ...processes] : processes
}

/** Waits until nothing is left, and answers what still is when the bound is over. */
export async function leftoversInTheEnd(folder: string): Promise<string[]> {
  const deadlineMs = performance.now() + GONE_BOUND_MS
  while (leftovers(folder).length > 0 && performance.now() < deadlineMs) await sleep(GONE_POLL_MS)
  return leftovers(folder)
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
