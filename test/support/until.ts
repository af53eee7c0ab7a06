import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** Waits for what can be seen, and no longer than anybody should have to. */
export async function until(reached: () => boolean | Promise<boolean>, patienceMs: number): Promise<void> {
  const deadlineMs = performance.now() + patienceMs
  while (!(await reached())) {
    if (performance.now() > deadlineMs) throw new Error(`Not within ${patienceMs} ms`)
    await sleep(POLL_MS)
  }
}
