import type { Runtime, Timer } from '../../runtime/runtime.ts'
import { natsExchangeLimits, streamLimits } from '../limits.ts'
import type { JetStreamInfo, JetStreamLine, JetStreamMessage, JetStreamReader, NatsLine } from './nats-driver.ts'
import type { HintStream } from './nats-stream.ts'

export interface FollowOptions {
  readonly connection: NatsLine
  readonly jetstream: JetStreamLine
  readonly stream: HintStream
  /** The subjects to read. */
  readonly subjects: string
  /** The stream when the exchange was made: later messages are read. */
  readonly from: JetStreamInfo
  readonly runtime: Runtime
  heard(message: JetStreamMessage): void
  onError(error: unknown): void
}

/**
 * Reads every message of some subjects in order, and continues where it was after a failure of the connection or the
 * server. An ordered consumer alone would notice messages lost with a connection only at the next message, so each
 * connection begins with a new consumer.
 */
export function followHints(options: FollowOptions): { stop(): Promise<void> } {
  const { connection, jetstream, stream, runtime, onError } = options
  let { created } = options.from
  /** The first message that was not read. */
  let next = options.from.state.last_seq + 1
  /** Only the last one counts: what an earlier one still finds is not for us. */
  let attempt = 0
  let stopped = false
  let failures = 0
  let timer: Timer | null = null
  let end: () => Promise<void> = async () => {}

  async function begin(): Promise<void> {
    const mine = ++attempt
    timer?.cancel()
    if (stopped) return
    await end()
    if (mine !== attempt) return
    try {
      const reader = await open()
      if (mine !== attempt) return await forget(reader)
      const reading = await reader.consume({
        max_messages: natsExchangeLimits.followAhead,
        expires: natsExchangeLimits.requestMs,
        idle_heartbeat: natsExchangeLimits.heartbeatMs,
        abort_on_missing_resource: true,
        callback(message) {
          if (mine === attempt) hear(message)
        },
      })
      end = async () => {
        end = async () => {}
        void reading.close()
        void forget(reader)
      }
      const why = await reading.closed()
      if (why instanceof Error) throw why
    } catch (error) {
      if (mine === attempt) onError(error)
    }
    if (mine === attempt) again()
  }

  async function open(): Promise<JetStreamReader> {
    const info = await stream.ensure()
    // A server that lost its disk numbers from the beginning again, and all that it has is new.
    if (info.created !== created || info.state.last_seq < next - 1) next = 1
    created = info.created
    return jetstream.consumers.get(stream.name, { opt_start_seq: next, filter_subjects: options.subjects })
  }

  function hear(message: JetStreamMessage): void {
    const { streamSequence } = message.info
    if (streamSequence < next) return
    next = streamSequence + 1
    failures = 0
    options.heard(message)
  }

  function again(): void {
    const delayMs = Math.min(streamLimits.pullRetryCapMs, streamLimits.pullRetryBaseMs * 2 ** failures)
    failures += 1
    timer = runtime.setTimer(delayMs, () => void begin(), true)
  }

  /** A server removes it by itself after a while, but need not keep it until then. */
  async function forget(reader: JetStreamReader): Promise<void> {
    await reader.delete().catch(() => {})
  }

  async function watch(): Promise<void> {
    for await (const { type } of connection.status()) {
      if (stopped) return
      if (type === 'reconnect') void begin()
    }
  }

  watch().catch(onError)
  void begin()
  return {
    async stop() {
      stopped = true
      attempt += 1
      timer?.cancel()
      await end()
    },
  }
}
