import { SECOND } from 'onceonly'
import type { CallRate } from '../config-rates.ts'
import type { Base } from '../store.ts'

/** The leave to call a provider once. */
export interface Slot {
  /** False for a process that was held up since: by then another one may have it. */
  isGood(): boolean
  /** The provider has answered, or will not be listened to any more. */
  end(): Promise<void>
}

export type Taken =
  | { readonly kind: 'slot'; readonly slot: Slot }
  /** All calls of this span are made. The message has its turn after so long. */
  | { readonly kind: 'full'; readonly waitMs: number }

export interface Slots {
  /** Immediately before a provider is called. */
  take(channel: string): Promise<Taken>
}

interface Parts {
  readonly base: Pick<Base, 'sql'>
  /** By the name of the channel; one that is not in it has no limit. */
  readonly rates: Pick<ReadonlyMap<string, CallRate>, 'get'>
  /** The longest that a call may take. */
  readonly callMs: number
  /** A slot that could not be given back is free by itself, later. */
  failed(channel: string, error: unknown): void
}

/** Between the leave and the call stands one write; a process that takes longer was paused. */
const GOOD_MS = 5 * SECOND
/** Clocks of the store and of the provider count in whole milliseconds. */
const ROUNDING_MS = 1

/** Channels whose rows a process knows to be there; all of them are forgotten past it. */
const PREPARED_MOST = 10_000

/** The row that has the end of the line of those that wait. */
const LINE = -1

const unlimited: Taken = { kind: 'slot', slot: { isGood: () => true, end: async () => {} } }

/**
 * As many rows for each provider as it may be called within a span. A call holds one of them from before it begins until a
 * whole span after its answer, so that no span has more calls at the provider, wherever between the two it counts them. A
 * process that dies keeps its slot for the longest that a call may take, and a span.
 */
export function createSlots({ base: { sql }, rates, callMs, failed }: Parts): Slots {
  const { now, query } = sql
  const prepared = new Map<string, Promise<void>>()
  const heldMs = GOOD_MS + callMs

  async function prepare(channel: string, { limit }: CallRate): Promise<void> {
    await query(
      `insert into message_slots (channel, slot, taken, free_at)
       with recursive slots (slot) as (select ${LINE} union all select slot + 1 from slots where slot + 1 < ?)
       select ?, slot, 0, 0 from slots where true on conflict do nothing`,
      [limit, channel],
    )
  }

  /** Once for each process; again after a failure. */
  function ready(channel: string, rate: CallRate): Promise<void> {
    const known = prepared.get(channel)
    if (known !== undefined) return known
    if (prepared.size >= PREPARED_MOST) prepared.clear()
    const preparing = prepare(channel, rate)
    prepared.set(channel, preparing)
    preparing.catch(() => prepared.delete(channel))
    return preparing
  }

  const takeText = `update message_slots set taken = taken + 1, free_at = ${now} + ?
    where channel = ? and slot = (select slot from message_slots
      where channel = ? and slot > ${LINE} and slot < ? and free_at <= ${now} order by slot limit 1
      ${sql.dialect.lock('for update skip locked')})
    returning slot, taken`
  // Each that waits has a turn of its own, so that a thousand of them do not ask again together.
  const lineText = `update message_slots
    set free_at = case when free_at > ${now} then free_at else ${now} end + ?
    where channel = ? and slot = ${LINE} returning free_at - ${now} as wait_ms`
  // One that was given to another process since is not ours to give back.
  const endText = `update message_slots set free_at = ${now} + ? where channel = ? and slot = ? and taken = ?
    returning slot`

  return {
    async take(channel) {
      const rate = rates.get(channel)
      if (rate === undefined) return unlimited
      const { limit, perMs } = rate
      await ready(channel, rate)
      const takenAtMs = performance.now()
      const [row] = await query<{ readonly slot: unknown; readonly taken: unknown }>(takeText, [
        heldMs + perMs + ROUNDING_MS,
        channel,
        channel,
        limit,
      ])
      if (row === undefined) {
        const [line] = await query<{ readonly wait_ms: unknown }>(lineText, [Math.ceil(perMs / limit), channel])
        // Its rows were removed because it had not been called for long.
        if (line === undefined) prepared.delete(channel)
        return { kind: 'full', waitMs: Math.max(1, Number(line?.wait_ms ?? perMs)) }
      }
      const slot: Slot = {
        isGood: () => performance.now() - takenAtMs < GOOD_MS,
        async end() {
          const values = [perMs + ROUNDING_MS, channel, Number(row.slot), Number(row.taken)]
          await query(endText, values).catch((error: unknown) => failed(channel, error))
        },
      }
      return { kind: 'slot', slot }
    },
  }
}
