import type { StreamBounds } from '../bounds.ts'
import { countOf } from '../parts/count.ts'
import type { ExchangedEntry, PullAnswer, PullRequest, RoomLog } from '../ports.ts'
import { covers } from '../protocol/position.ts'

/** What a peer lacks: of our own log, or of all that we have, where it cannot reach the others. */
export async function answerPull(log: RoomLog, bounds: StreamBounds, request: PullRequest): Promise<PullAnswer> {
  const state = await log.open(request.room)
  const own = { ...state.position, [state.log]: countOf(request.position, state.log) }
  const wanted = request.all ? request.position : own
  // The usual answer in a quiet room, which costs one look.
  if (covers(wanted, state.position)) return { kind: 'entries', entries: [], position: state.position }
  const found = await log.find(request.room, wanted)
  if (found.kind === 'expired') return { kind: 'expired', image: await log.image(request.room) }
  const entries: ExchangedEntry[] = []
  const bound = { entries: bounds.pullEntries, bytes: bounds.pullBytes }
  for (let after = found.at; entries.length === 0 && after < state.at; ) {
    const read = await log.read(request.room, after, bound)
    const last = read.at(-1)
    if (last === undefined) break
    after = last.at
    for (const { at: _at, copy: _copy, ...entry } of read) {
      const asked = request.all || entry.log === state.log
      if (asked && entry.n > countOf(wanted, entry.log)) entries.push(entry)
    }
  }
  return { kind: 'entries', entries, position: state.position }
}
