import { HOUR } from 'onceonly'
import { defineRun, schedule } from 'onceonly/run'

/** When a campaign begins again. */
export interface Recurrence {
  readonly cron: string
  readonly timezone: string
}

/** What is reached more often than this is no campaign. */
const LEAST_MS = 1 * HOUR
/** Rounds that are looked at: enough to see every gap of an hour, a day and a week. */
const LOOKED = 200

const nothing = defineRun('none', async () => null)

/** The first round after a time, both in milliseconds; null when there is none any more. */
export function nextAfter({ cron, timezone }: Recurrence, ms: number): number | null {
  return schedule('campaign', { run: nothing, input: null, cron, timezone }).nextAfter(ms)
}

/** What is wrong with it, or null. */
export function complaintAboutRecurrence(recurs: Recurrence, nowMs: number): string | null {
  try {
    let last = nextAfter(recurs, nowMs)
    for (let round = 0; round < LOOKED && last !== null; round++) {
      const next = nextAfter(recurs, last)
      if (next !== null && next - last < LEAST_MS) return 'names times that are less than an hour apart'
      last = next
    }
    return null
  } catch (error) {
    return `cannot be followed: ${error instanceof Error ? error.message : String(error)}`
  }
}
