import type { Pending } from '../parts/sender.ts'
import type { LogPlace } from '../protocol/protocol.ts'
import type { KeyValues } from './key-values.ts'
import type { ClientIdentity, ClientPosition, ClientRecord, ClientStorage, PendingSend } from './ports.ts'

/** A storage that holds something open, a file or a database, until it is stopped. */
export interface OpenClientStorage extends ClientStorage {
  stop(): Promise<void>
}

const IDENTITY = 'identity'
const NEXT = 'next'
const ACKNOWLEDGED = 'acknowledged'
const POSITION = 'position'
const PENDING = 'pending '
const SETTLED = 'settled '
/** Senders whose numbers are remembered; the oldest make room. */
const SETTLED_MOST = 10_000

/**
 * A client's storage as small values under names. `settle` runs the effect and then writes: a crash between the two shows
 * the message again, under the same key. Where that must not be, write it in the effect's own transaction.
 */
export function createClientStorage(values: KeyValues): OpenClientStorage {
  const { atomically = (work) => work((changes) => values.write(changes)) } = values
  const numbers = new Set<number>()
  /** By sender, the last number that was settled: the messages of a sender come in order. */
  const settled = new Map<string, number>()

  async function load(): Promise<ClientRecord | null> {
    const kept = await values.load()
    const identity = kept.get(IDENTITY) as ClientIdentity | undefined
    if (identity === undefined) return null
    const pending: { number: number; message: PendingSend }[] = []
    for (const [name, value] of kept) {
      if (name.startsWith(PENDING))
        pending.push({ number: Number(name.slice(PENDING.length)), message: value as PendingSend })
      if (name.startsWith(SETTLED)) settled.set(name.slice(SETTLED.length), value as number)
    }
    numbers.clear()
    for (const { number } of pending) numbers.add(number)
    return {
      identity,
      next: (kept.get(NEXT) as number | undefined) ?? 1,
      pending: pending.sort((a, b) => a.number - b.number),
      acknowledged: (kept.get(ACKNOWLEDGED) as LogPlace | undefined) ?? null,
      position: (kept.get(POSITION) as ClientPosition | undefined) ?? { logs: {}, ordered: 0 },
    }
  }

  async function renew(identity: ClientIdentity, pending: readonly Pending<PendingSend>[]): Promise<void> {
    const put: Record<string, unknown> = { [IDENTITY]: identity, [NEXT]: pending.length + 1 }
    const remove = [ACKNOWLEDGED, ...[...numbers].map((number) => PENDING + number)]
    numbers.clear()
    for (const { number, message } of pending) {
      put[PENDING + number] = message
      numbers.add(number)
    }
    await values.write({ put, remove })
  }

  return {
    load,
    identify: (identity) => values.write({ put: { [IDENTITY]: identity } }),
    renew,
    async save({ number, message }) {
      await values.write({ put: { [PENDING + number]: message, [NEXT]: number + 1 } })
      numbers.add(number)
    },
    async remove(below, ranges) {
      const done = [...numbers].filter(
        (number) => number < below || ranges.some(([a, b]) => a <= number && number <= b),
      )
      for (const number of done) numbers.delete(number)
      await values.write({ remove: done.map((number) => PENDING + number) })
    },
    acknowledged: (place) => values.write({ put: { [ACKNOWLEDGED]: place } }),
    advance: (position) => values.write({ put: { [POSITION]: position } }),
    async settle(key, position, effect) {
      const { sender, number } = partsOf(key)
      const again = (settled.get(sender) ?? 0) >= number
      const forgotten = again ? undefined : oldestBut(sender)
      await atomically(async (write) => {
        if (!again) await effect()
        const put = again ? { [POSITION]: position } : { [POSITION]: position, [SETTLED + sender]: number }
        await write({ put, remove: forgotten === undefined ? [] : [SETTLED + forgotten] })
      })
      // Only now: what was rolled back comes again, and must not be taken for settled.
      if (!again) settled.delete(sender)
      if (!again) settled.set(sender, number)
      if (forgotten !== undefined) settled.delete(forgotten)
      return !again
    },
    stop: () => values.stop(),
  }

  /** The author who has been quiet for longest, once too many are remembered. */
  function oldestBut(sender: string): string | undefined {
    if (settled.size < SETTLED_MOST || settled.has(sender)) return undefined
    for (const oldest of settled.keys()) return oldest
    return undefined
  }
}

/** A key is an identity as text: its sender, and the number, which grows. */
function partsOf(key: string): { readonly sender: string; readonly number: number } {
  const end = key.lastIndexOf('/')
  return { sender: key.slice(0, end), number: Number(key.slice(end + 1)) }
}
