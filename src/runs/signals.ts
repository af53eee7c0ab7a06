import { decodeValue, encodeValue } from '../ledger/core/codec.ts'
import type { Place } from './branch.ts'
import type { Received } from './context.ts'
import type { SignalRow } from './entry.ts'
import type { Execution } from './execution.ts'
import { never } from './execution.ts'
import type { Kept } from './kept.ts'
import { readKept } from './kept.ts'

/**
 * Takes the oldest signal of a name that no wait has taken yet; waits for one, without a limit or until its time is
 * over.
 */
export async function receive<T>(
  execution: Execution,
  place: Place,
  name: string,
  timeoutMs: number | null,
): Promise<Received<T>> {
  const { taken } = execution
  if (place.recorded?.state === 'succeeded') return readKept<T>(place.recorded.result).received
  const dueAt = place.recorded?.dueAt ?? (timeoutMs === null ? null : (await execution.clock()) + Math.ceil(timeoutMs))
  const waiting = execution.entry(place, { state: 'waiting', dueAt })
  const keep = async (id: string | null, received: Received<T>) => {
    const encoded = encodeValue({ id, received } satisfies Kept<T>)
    const result = 'text' in encoded ? encoded.text : ''
    await execution.put({ ...waiting, state: 'succeeded', result })
    return received
  }
  // Of several with one name the oldest is next; a signal is taken by one wait only.
  const take = (signals: readonly SignalRow[]) => {
    const signal = signals.find((each) => each.name === name && !taken.has(each.id))
    if (signal === undefined) return null
    taken.add(signal.id)
    return keep(signal.id, { kind: 'received', payload: decodeValue(signal.payload) as T })
  }
  const there = take(execution.signals)
  if (there !== null) return there
  if (place.recorded === null) await execution.put(waiting)
  // A later signal makes the run due; while other branches keep it in memory, its worker is notified.
  for (let heard = 0; ; heard = execution.heard()) {
    const late = dueAt !== null && (await execution.clock()) >= dueAt
    const came = late || heard > 0 ? take(await execution.newSignals()) : null
    if (came !== null) return await came
    if (late) return await keep(null, { kind: 'timed_out' })
    const woken = await execution.wait({ dueAt, unknown: false, heard }, place.branch.signal)
    // The race is decided, and no caller waits for this branch any more.
    if (woken === 'abandoned') return await never()
  }
}
