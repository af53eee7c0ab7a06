import { OnceError } from '../../ledger/core/errors.ts'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { streamLimits } from '../limits.ts'
import type {
  Exchange,
  ExchangedEntry,
  FenceAnswer,
  FenceRequest,
  PullAnswer,
  PullRequest,
  RegionHint,
  RegionPeer,
  RoomImage,
} from '../ports.ts'
import type { Fields } from '../protocol/fields.ts'
import { count, fields, position } from '../protocol/fields.ts'
import { furthest } from '../protocol/position.ts'
import type { Position } from '../protocol/protocol.ts'
import { decodeWord, encodeWord, readEntries, readFence, readFenceAnswer, readHint, readPull } from './decode.ts'
import { ExchangeError } from './errors.ts'
import { readCopy } from './nats-copy.ts'
import type { JetStreamLine, JetStreamMessage, NatsLine } from './nats-driver.ts'
import { followHints } from './nats-follow.ts'
import { createHintPublisher } from './nats-publish.ts'
import { openHintStream, subjectOf } from './nats-stream.ts'

export interface NatsExchangeOptions {
  /** Yours; close it after the region. */
  readonly connection: NatsLine
  /** `jetstream(connection)` of `@nats-io/jetstream`. */
  readonly jetstream: JetStreamLine
  /** The name of this region. */
  readonly region: string
  /** Before all subjects, where systems share a server: letters, digits, dashes and dots. @default 'onceonly.stream' */
  readonly namespace?: string
  /** A peer that does not answer within this, in milliseconds, is down. @default 5 seconds */
  readonly pullMs?: number
  /** Copies of the stream in a cluster. @default 1 */
  readonly replicas?: number
  /** Called with errors that are tried again. @default none */
  onError?(error: unknown): void
  /** Time and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

/** The default message size limit of a NATS server. */
const PAYLOAD_BYTES = 1_024 * 1_024
/** Room for subjects and headers. */
const PAYLOAD_SPARE_BYTES = 4 * 1_024
/** Enough for an image with some hundred thousand clients; a larger value is a mistake. */
const PARTS_BYTES_MOST = 64 * 1_024 * 1_024

/**
 * What travels in place of an answer that is too large for one message and cannot be cut: an image is of one moment.
 */
type CarriedAnswer =
  | PullAnswer
  /** Ask again, and name a subject for the parts. */
  | { readonly kind: 'large' }
  /** They were sent there, in their order. */
  | { readonly kind: 'parts'; readonly bytes: number }

interface CarriedRequest extends PullRequest {
  readonly parts: string | null
}

/**
 * Regions over NATS. Pulls and fences are requests, because a region's log is the truth about it. Hints are messages of a
 * JetStream stream, which keeps them as long as a log goes back. Session announcements are read from the stream: a region
 * that was away from NATS gets them late rather than never. Positions, with the entries that were just accepted, are read
 * on their way to the stream, because they are many and urgent; a region that misses one pulls from the writer, or from
 * the stream when the writer is down. What the stream has lost is pulled, too, so it is never a second truth.
 * Any client that may publish on these subjects is trusted as a region; the last part but one of a hint's subject names it.
 *
 * @example
 * ```ts
 * import { jetstream } from '@nats-io/jetstream'
 * import { connect } from '@nats-io/transport-node'
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createNatsExchange, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
 *
 * const connection = await connect({ servers: 'nats://127.0.0.1:4222' })
 * const exchange = await createNatsExchange({ connection, jetstream: jetstream(connection), region: 'eu' })
 * const log = createSqlRoomLog({ store: sqliteStore('rooms.db'), region: 'eu' })
 * const region = createStreamRegion({ region: 'eu', peers: ['us'], log, exchange })
 * ```
 */
export async function createNatsExchange(options: NatsExchangeOptions): Promise<Exchange> {
  const { connection, jetstream, region, namespace = 'onceonly.stream', replicas = 1 } = options
  const { pullMs = streamLimits.pullMs, onError = () => {}, runtime = createRuntime() } = options
  if (!/^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/.test(namespace)) {
    throw new OnceError(
      'bad_option',
      `\`${namespace}\` is not a valid namespace: use letters, digits, dashes and dots.`,
    )
  }
  const pullSubject = (peer: string) => `${namespace}.pull.${peer}`
  const fenceSubject = (peer: string) => `${namespace}.fence.${peer}`
  const partsSubject = `${namespace}.parts.`
  const mostBytes = () => (connection.info?.max_payload ?? PAYLOAD_BYTES) - PAYLOAD_SPARE_BYTES
  const subject = (hint: Pick<RegionHint, 'kind' | 'region' | 'room'>) => subjectOf(namespace, hint)
  const stream = await openHintStream({ jetstream, namespace, replicas })
  const from = await stream.ensure()
  const publisher = createHintPublisher({ connection, jetstream, runtime, subjectOf: subject, mostBytes, onError })

  async function pull(peer: string, request: PullRequest): Promise<PullAnswer> {
    try {
      const answer = await ask(peer, { ...request, parts: null })
      return answer.kind === 'large' ? await pullParts(peer, request) : wholeAnswer(answer)
    } catch (cause) {
      const entries = await copied(peer, request)
      if (entries.length > 0) return { kind: 'entries', entries, position: reached(request.position, entries) }
      throw new ExchangeError('broker_unavailable', `${peer} does not answer.`, { cause })
    }
  }

  async function copied(peer: string, request: PullRequest): Promise<readonly ExchangedEntry[]> {
    try {
      const of = subject({ kind: 'position', region: peer, room: request.room })
      return await readCopy({ jetstream, stream }, of, request)
    } catch (error) {
      onError(error)
      return []
    }
  }

  async function ask(peer: string, request: CarriedRequest): Promise<CarriedAnswer> {
    const answer = await connection.request(pullSubject(peer), encodeWord(request), { timeout: pullMs })
    return decodeWord(answer.data, readAnswer)
  }

  async function fence(peer: string, request: FenceRequest): Promise<FenceAnswer> {
    try {
      const timeout = streamLimits.fenceMs
      const { data } = await connection.request(fenceSubject(peer), encodeWord(request), { timeout })
      return decodeWord(data, readFenceAnswer)
    } catch (cause) {
      throw new ExchangeError('broker_unavailable', `${peer} does not answer.`, { cause })
    }
  }

  async function pullParts(peer: string, request: PullRequest): Promise<PullAnswer> {
    const subject = `${partsSubject}${runtime.newId()}`
    const parts: Uint8Array[] = []
    let bytes = 0
    const { promise: arrived, resolve } = Promise.withResolvers<void>()
    let expected = PARTS_BYTES_MOST
    const listening = connection.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null || bytes >= expected) return
        parts.push(message.data)
        bytes += message.data.length
        if (bytes >= expected) resolve()
      },
    })
    // A part that is lost is not sent again: then all of it is requested again at the peer's next turn.
    const late = runtime.setTimer(pullMs, resolve, true)
    try {
      const answer = await ask(peer, { ...request, parts: subject })
      if (answer.kind !== 'parts') return wholeAnswer(answer)
      expected = answer.bytes
      if (bytes < expected) await arrived
      if (bytes !== expected)
        throw new ExchangeError('broker_unavailable', `Parts of an answer of ${peer} are missing.`)
      return wholeAnswer(decodeWord(Buffer.concat(parts), readAnswer))
    } finally {
      late.cancel()
      listening.unsubscribe()
    }
  }

  function answerWith(answer: PullAnswer, parts: string | null): Uint8Array {
    const whole = fitting(answer, mostBytes())
    if (whole.length <= mostBytes()) return whole
    if (parts?.startsWith(partsSubject) !== true) return encodeWord({ kind: 'large' } satisfies CarriedAnswer)
    for (let at = 0; at < whole.length; at += mostBytes()) {
      connection.publish(parts, whole.subarray(at, at + mostBytes()))
    }
    return encodeWord({ kind: 'parts', bytes: whole.length } satisfies CarriedAnswer)
  }

  function hear({ subject: on, data }: Pick<JetStreamMessage, 'subject' | 'data'>, peer: RegionPeer): void {
    try {
      const hint = decodeWord(data, readHint)
      if (subject(hint) !== on) throw new ExchangeError('unreadable_message', `A hint of ${hint.region} came on ${on}.`)
      if (hint.region !== region) peer.hinted(hint)
    } catch (error) {
      onError(error)
    }
  }

  return {
    pull,
    fence,
    hint: (hint) => publisher.hint(hint),
    serve(peer) {
      // One process of the region answers each request.
      const answering = (subject: string, answer: (data: Uint8Array) => Promise<Uint8Array>) =>
        connection.subscribe(subject, {
          queue: region,
          callback: (error, message) => {
            if (error !== null) return
            const respond = async () => void message.respond(await answer(message.data))
            respond().catch(onError)
          },
        })
      const pulls = answering(pullSubject(region), async (data) => {
        const request = decodeWord(data, readPull)
        return answerWith(await peer.pull(request), request.parts)
      })
      const fences = answering(fenceSubject(region), async (data) =>
        encodeWord(await peer.fence(decodeWord(data, readFence))),
      )
      const positions = connection.subscribe(`${namespace}.position.>`, {
        callback: (error, message) => {
          if (error === null) hear(message, peer)
        },
      })
      const entrances = followHints({
        connection,
        jetstream,
        stream,
        subjects: `${namespace}.entered.>`,
        from,
        runtime,
        heard: (message) => hear(message, peer),
        onError,
      })
      return {
        async stop() {
          pulls.unsubscribe()
          fences.unsubscribe()
          positions.unsubscribe()
          publisher.stop()
          await entrances.stop()
        },
      }
    },
  }
}

function wholeAnswer(answer: CarriedAnswer): PullAnswer {
  if (answer.kind === 'entries' || answer.kind === 'expired') return answer
  throw new ExchangeError('unreadable_message', 'The answer of a peer does not match the request.')
}

/** Entries may be cut anywhere: the caller continues from where they end. */
function fitting(answer: PullAnswer, mostBytes: number): Uint8Array {
  const whole = encodeWord(answer)
  if (whole.length <= mostBytes || answer.kind === 'expired' || answer.entries.length < 2) return whole
  return fitting({ ...answer, entries: answer.entries.slice(0, answer.entries.length >> 1) }, mostBytes)
}

/** The position after these entries. */
function reached(position: Position, entries: readonly ExchangedEntry[]): Position {
  return entries.reduce((far, { log, n }) => furthest(far, { [log]: n }), position)
}

/** An image is trusted without validation: it has hundreds of thousands of clients, and comes from a region. */
function readAnswer(from: Fields): CarriedAnswer {
  const { kind } = from
  switch (kind) {
    case 'entries':
      return { kind, entries: readEntries(from, Number.MAX_SAFE_INTEGER), position: position(from, 'position') }
    case 'expired':
      return { kind, image: fields(from['image'], 'image') as unknown as RoomImage }
    case 'large':
      return { kind }
    case 'parts':
      return { kind, bytes: count(from, 'bytes', 1) }
    default:
      throw new ExchangeError('unreadable_message', 'A peer sent an answer of an unknown kind.')
  }
}
