import type { Runtime, Timer } from '../../runtime/runtime.ts'
import { natsExchangeLimits, streamLimits } from '../limits.ts'
import type { ExchangedEntry, RegionHint } from '../ports.ts'
import { encodeWord } from './decode.ts'
import { ExchangeError } from './errors.ts'
import type { JetStreamLine, NatsLine } from './nats-driver.ts'

type Entrance = Extract<RegionHint, { kind: 'entered' }>
type PositionHint = Extract<RegionHint, { kind: 'position' }>

/**
 * Sends hints without blocking the caller: what the server does not take now is dropped if peers pull it anyway, else
 * sent later.
 */
export interface HintPublisher {
  hint(hint: RegionHint): void
  stop(): void
}

export interface HintPublisherOptions {
  readonly connection: NatsLine
  readonly jetstream: JetStreamLine
  readonly runtime: Runtime
  subjectOf(hint: RegionHint): string
  mostBytes(): number
  onError(error: unknown): void
}

export function createHintPublisher(options: HintPublisherOptions): HintPublisher {
  const { connection, jetstream, runtime, subjectOf, mostBytes, onError } = options
  /** By room and client, the oldest first. */
  const owed = new Map<string, Entrance>()
  let underWay = 0
  let bytesUnderWay = 0
  /**
   * Since the last confirmed publish. A server takes messages in order, so one confirmation covers everything before
   * it.
   */
  let unasked = 0
  let bytesUnasked = 0
  /** In a row. While there are some, the server is tried with one hint at a time. */
  let failures = 0
  let waiting: Timer | null = null
  let stopped = false

  function hasRoom(): boolean {
    if (stopped || waiting !== null) return false
    if (failures > 0) return underWay === 0
    return underWay < natsExchangeLimits.underWay && bytesUnderWay < natsExchangeLimits.underWayBytes
  }

  function publish(hint: RegionHint, payload: Uint8Array): void {
    const { askEvery, askBytes } = natsExchangeLimits
    const isPlain = hint.kind === 'position' && failures === 0 && unasked < askEvery && bytesUnasked < askBytes
    if (isPlain) fire(hint, payload)
    else ask(hint, payload)
  }

  function fire(hint: RegionHint, payload: Uint8Array): void {
    unasked += 1
    bytesUnasked += payload.length
    try {
      connection.publish(subjectOf(hint), payload)
    } catch (error) {
      onError(error)
      failed()
    }
  }

  function ask(hint: RegionHint, payload: Uint8Array): void {
    const bytes = bytesUnasked + payload.length
    unasked = 0
    bytesUnasked = 0
    underWay += 1
    bytesUnderWay += bytes
    jetstream
      .publish(subjectOf(hint), payload, { timeout: natsExchangeLimits.confirmMs })
      .then(() => {
        failures = 0
      })
      .catch((error: unknown) => {
        onError(error)
        if (hint.kind === 'entered') owe(hint)
        failed()
      })
      .finally(() => {
        underWay -= 1
        bytesUnderWay -= bytes
        pay()
      })
  }

  function failed(): void {
    if (waiting !== null || stopped) return
    failures += 1
    const delayMs = Math.min(streamLimits.pullRetryCapMs, streamLimits.pullRetryBaseMs * 2 ** (failures - 1))
    waiting = runtime.setTimer(
      delayMs,
      () => {
        waiting = null
        pay()
      },
      true,
    )
  }

  function owe(hint: Entrance): void {
    const key = `${hint.room}/${hint.claim.client}`
    const known = owed.get(key)
    if (known !== undefined && known.claim.generation >= hint.claim.generation) return
    owed.delete(key)
    owed.set(key, hint)
    if (owed.size <= natsExchangeLimits.owedEntrances) return
    for (const oldest of owed.keys()) {
      owed.delete(oldest)
      return onError(
        new ExchangeError(
          'broker_unavailable',
          'Too many session announcements wait for NATS; the oldest was dropped.',
        ),
      )
    }
  }

  function pay(): void {
    for (const [key, hint] of owed) {
      if (!hasRoom()) return
      owed.delete(key)
      publish(hint, encodeWord(hint))
    }
  }

  return {
    hint(hint) {
      if (hint.kind === 'entered') {
        owe(hint)
        return pay()
      }
      for (const part of partsOf(hint, mostBytes())) if (hasRoom()) publish(hint, part)
    },
    stop() {
      stopped = true
      waiting?.cancel()
      owed.clear()
    },
  }
}

/** As many messages as it takes. An entry that is too large for any is left out: then it is pulled. */
function partsOf(hint: PositionHint, mostBytes: number): readonly Uint8Array[] {
  const { entries } = hint
  const whole = encodeWord(hint)
  if (whole.length <= mostBytes && entries.length <= streamLimits.writeEntries) return [whole]
  if (entries.length < 2) return [encodeWord({ ...hint, entries: [] })]
  const half = entries.length >> 1
  return [
    ...partsOf(upTo(hint, entries.slice(0, half)), mostBytes),
    ...partsOf({ ...hint, entries: entries.slice(half) }, mostBytes),
  ]
}

/** Announces only what it carries, so that no peer pulls what the next message brings. */
function upTo(hint: PositionHint, entries: readonly ExchangedEntry[]): PositionHint {
  const last = entries.at(-1)
  return { ...hint, entries, position: last === undefined ? hint.position : { ...hint.position, [last.log]: last.n } }
}
