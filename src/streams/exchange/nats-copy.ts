import { natsExchangeLimits, streamLimits } from '../limits.ts'
import type { ExchangedEntry, PullRequest } from '../ports.ts'
import { countOf } from '../protocol/position.ts'
import type { Position } from '../protocol/protocol.ts'
import { decodeWord, readHint } from './decode.ts'
import type { JetStreamKept, JetStreamLine, JetStreamMessages } from './nats-driver.ts'
import type { HintStream } from './nats-stream.ts'

/**
 * What the stream still has of the log of a region that does not answer: whatever was sent out had been acknowledged, so
 * that it is a true copy. Only what follows the asked position without a gap is of use.
 */
export async function readCopy(
  { jetstream, stream }: { readonly jetstream: JetStreamLine; readonly stream: HintStream },
  subject: string,
  { position }: PullRequest,
): Promise<readonly ExchangedEntry[]> {
  const { streams } = stream.manager
  // The usual answer while a region is down, which costs one read.
  const last = await streams.getMessage(stream.name, { last_by_subj: subject })
  if (last === null || !reaches(entriesOf(last.data), position, 0)) return []
  const { first_seq: first } = (await streams.info(stream.name)).state
  const from = await search(first, last.seq, async (seq) => {
    const { skewEntries, unreadableInRow } = natsExchangeLimits
    let kept: JetStreamKept | null = null
    for (let at = seq, tries = 0; tries < unreadableInRow; tries++) {
      kept = await streams.getMessage(stream.name, { seq: at, next_by_subj: subject })
      const entries = kept === null ? [] : entriesOf(kept.data)
      if (kept === null || entries.length > 0) {
        return { seq: kept?.seq ?? last.seq, after: kept === null || reaches(entries, position, skewEntries) }
      }
      at = kept.seq + 1
    }
    return { seq: kept?.seq ?? seq, after: false }
  })

  const reader = await jetstream.consumers.get(stream.name, { opt_start_seq: from, filter_subjects: subject })
  let messages: JetStreamMessages | null = null
  try {
    const found = new Map<string, ExchangedEntry>()
    let bytes = 0
    const most = { max_messages: natsExchangeLimits.copyMessages, expires: streamLimits.pullMs }
    messages = await reader.fetch(most)
    for await (const { data, info } of messages) {
      const fresh = entriesOf(data).filter(({ log, n }) => n > countOf(position, log))
      for (const entry of fresh) found.set(placeText(entry.log, entry.n), entry)
      if (fresh.length > 0) bytes += data.length
      if (found.size >= streamLimits.pullEntries || bytes >= streamLimits.pullBytes) break
      if (info.streamSequence >= last.seq) break
    }
    return withoutGaps(found, position)
  } finally {
    await messages?.close()
    await reader.delete().catch(() => {})
  }
}

/** The first number from which on messages come after what is asked for. */
async function search(
  first: number,
  last: number,
  look: (seq: number) => Promise<{ readonly seq: number; readonly after: boolean }>,
): Promise<number> {
  let [low, high] = [first, last]
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2)
    const { seq, after } = await look(middle)
    if (after) high = middle
    else low = Math.min(seq + 1, high)
  }
  return low
}

/** Whether a message comes after the given position, or at most `skew` entries before it. */
function reaches(entries: readonly ExchangedEntry[], position: Position, skew: number): boolean {
  return entries.some(({ log, n }) => n > countOf(position, log) - skew)
}

/** Messages that no region wrote are skipped. */
function entriesOf(data: Uint8Array): readonly ExchangedEntry[] {
  try {
    const hint = decodeWord(data, readHint)
    return hint.kind === 'position' ? hint.entries : []
  } catch {
    return []
  }
}

function withoutGaps(found: ReadonlyMap<string, ExchangedEntry>, position: Position): readonly ExchangedEntry[] {
  const entries: ExchangedEntry[] = []
  for (const log of new Set([...found.values()].map((entry) => entry.log))) {
    for (let n = countOf(position, log) + 1; ; n++) {
      const entry = found.get(placeText(log, n))
      if (entry === undefined) break
      entries.push(entry)
    }
  }
  return entries
}

function placeText(log: string, n: number): string {
  return `${n} ${log}`
}
