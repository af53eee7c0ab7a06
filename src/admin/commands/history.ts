import { HISTORY_MS } from '../core/history.ts'
import { type HistoryRange, historyRanges, pointsOf } from '../core/history-points.ts'
import { oneOf, withDefault } from './argument.ts'
import { read } from './command.ts'

const ranges = Object.keys(historyRanges) as readonly HistoryRange[]

export const historyCommands = {
  history: read({
    summary: 'decisions, latencies and backlogs of the last hours, over all servers',
    details: 'Servers with a console write it down, minute by minute, and keep a day of it.',
    arguments: { range: withDefault(oneOf('how far back', ranges), '1h') },
    words: ['range'],
    path: '/history',
    async read({ admin }, { range }) {
      // By the clock of this machine, as the servers write it.
      const now = Date.now()
      const from = now - Math.min(HISTORY_MS, historyRanges[range].ms)
      const { stepMs } = historyRanges[range]
      return { range, stepMs, now, points: pointsOf(await admin.history.since(from - stepMs), now, range) }
    },
  }),
}
