import { OnceError } from '../core/errors.ts'
import { streamLimits } from '../core/limits.ts'
import { createRuntime, type Runtime } from '../ledger/runtime.ts'
import { isStreamName } from './decode.ts'
import type { Exchange, FenceAnswer, FenceRequest, PullAnswer, PullRequest, RegionHint } from './ports.ts'

/** What is used of a connection of `@nats-io/transport-node`, or of another client of `@nats-io/nats-core`. */
export interface NatsLine {
  readonly info?: { readonly max_payload?: number } | undefined
  publish(subject: string, payload: Uint8Array): void
  request(
    subject: string,
    payload: Uint8Array,
    options: { readonly timeout: number },
  ): Promise<{ readonly data: Uint8Array }>
  subscribe(subject: string, options: NatsEar): { unsubscribe(): void }
}

export interface NatsEar {
  readonly queue?: string
  readonly callback: (error: Error | null, message: NatsAsked) => void
}

export interface NatsAsked {
  readonly data: Uint8Array
  respond(payload: Uint8Array): boolean
}

export interface NatsExchangeOptions {
  /** Yours; close it after the region. */
  readonly connection: NatsLine
  readonly region: string
  /** Before all subjects, where systems share a server: letters, digits, dashes and dots. */
  readonly namespace?: string
  onError?(error: unknown): void
  readonly runtime?: Runtime
}

/** What a NATS server takes in one message, unless it is told otherwise. */
const PAYLOAD_BYTES = 1_024 * 1_024
/** Room for subjects and headers. */
const PAYLOAD_SPARE_BYTES = 4 * 1_024
/** An image of some hundred thousand clients; whoever names more has not counted. */
const PARTS_BYTES_MOST = 64 * 1_024 * 1_024

/** What travels in place of an answer that is too large for one message and cannot be cut: an image is of one moment. */
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
 * Regions over core NATS: a pull is a request, a hint is a publication. Nothing is kept in between, on purpose: every
 * entry is durable in the log of its own region, where the others pull it by position, and whoever comes after it was
 * removed takes an image; a stream of the broker would only be a second log, with acknowledgements and a retention of its
 * own that could disagree with the first.
 * Whoever may publish on these subjects is a region.
 */
export function createNatsExchange(options: NatsExchangeOptions): Exchange {
  const { connection, region, namespace = 'onceonly.stream', onError = () => {}, runtime = createRuntime() } = options
  if (!/^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/.test(namespace)) {
    throw new OnceError('bad_option', `\`${namespace}\` cannot stand before a subject.`)
  }
  const pullSubject = (peer: string) => `${namespace}.pull.${peer}`
  const fenceSubject = (peer: string) => `${namespace}.fence.${peer}`
  const hintSubject = `${namespace}.hint`
  const partsSubject = `${namespace}.parts.`
  const mostBytes = () => (connection.info?.max_payload ?? PAYLOAD_BYTES) - PAYLOAD_SPARE_BYTES

  async function pull(peer: string, request: PullRequest): Promise<PullAnswer> {
    try {
      const answer = await ask(peer, { ...request, parts: null })
      return answer.kind === 'large' ? await pullParts(peer, request) : wholeAnswer(answer)
    } catch (cause) {
      throw new OnceError('broker_unavailable', `${peer} does not answer.`, { cause })
    }
  }

  async function ask(peer: string, request: CarriedRequest): Promise<CarriedAnswer> {
    const answer = await connection.request(pullSubject(peer), encode(request), { timeout: streamLimits.pullMs })
    return decode<CarriedAnswer>(answer.data, ['entries', 'expired', 'large', 'parts'])
  }

  async function fence(peer: string, request: FenceRequest): Promise<FenceAnswer> {
    try {
      const timeout = streamLimits.fenceMs
      const { data } = await connection.request(fenceSubject(peer), encode(request), { timeout })
      return decode<FenceAnswer>(data, ['entered', 'fenced', 'cloned'])
    } catch (cause) {
      throw new OnceError('broker_unavailable', `${peer} does not answer.`, { cause })
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
    // A part that is lost is not sent again: then all of it is asked for once more, when the peer has its next turn.
    const late = runtime.setTimer(streamLimits.pullMs, resolve, true)
    try {
      const answer = await ask(peer, { ...request, parts: subject })
      if (answer.kind !== 'parts') return wholeAnswer(answer)
      expected = answer.bytes
      if (bytes < expected) await arrived
      if (bytes !== expected) throw new OnceError('broker_unavailable', `Parts of an answer of ${peer} are missing.`)
      return wholeAnswer(decode<CarriedAnswer>(Buffer.concat(parts), ['entries', 'expired']))
    } finally {
      late.cancel()
      listening.unsubscribe()
    }
  }

  function answerWith(answer: PullAnswer, parts: string | null): Uint8Array {
    const whole = fitting(answer, mostBytes())
    if (whole.length <= mostBytes()) return whole
    if (parts?.startsWith(partsSubject) !== true) return encode({ kind: 'large' } satisfies CarriedAnswer)
    for (let at = 0; at < whole.length; at += mostBytes()) {
      connection.publish(parts, whole.subarray(at, at + mostBytes()))
    }
    return encode({ kind: 'parts', bytes: whole.length } satisfies CarriedAnswer)
  }

  function hint(given: RegionHint): void {
    try {
      const whole = encode(given)
      // Too large to save the pull: then it is pulled.
      const fits = whole.length <= mostBytes() || given.kind !== 'position'
      connection.publish(hintSubject, fits ? whole : encode({ ...given, entries: [] }))
    } catch (error) {
      // A connection that is away loses hints, and nothing else.
      onError(error)
    }
  }

  return {
    pull,
    fence,
    hint,
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
        const request = decodeRequest(data)
        return answerWith(await peer.pull(request), request.parts)
      })
      const fences = answering(fenceSubject(region), async (data) => encode(await peer.fence(decodeFence(data))))
      const hints = connection.subscribe(hintSubject, {
        callback: (error, message) => {
          if (error !== null) return
          try {
            const arrived = decode<RegionHint>(message.data, ['position', 'entered'])
            if (arrived.region !== region && isStreamName(arrived.room)) peer.hinted(arrived)
          } catch (problem) {
            onError(problem)
          }
        },
      })
      return {
        async stop() {
          pulls.unsubscribe()
          fences.unsubscribe()
          hints.unsubscribe()
        },
      }
    },
  }
}

function wholeAnswer(answer: CarriedAnswer): PullAnswer {
  if (answer.kind === 'entries' || answer.kind === 'expired') return answer
  throw new OnceError('unreadable_message', 'A peer answered something else than it was asked.')
}

/** Entries may be cut anywhere: whoever asked goes on from where they end. */
function fitting(answer: PullAnswer, mostBytes: number): Uint8Array {
  const whole = encode(answer)
  if (whole.length <= mostBytes || answer.kind === 'expired' || answer.entries.length < 2) return whole
  return fitting({ ...answer, entries: answer.entries.slice(0, answer.entries.length >> 1) }, mostBytes)
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value))
}

function decode<T extends { readonly kind: string }>(data: Uint8Array, kinds: readonly T['kind'][]): T {
  const value = JSON.parse(new TextDecoder().decode(data)) as T
  if (!kinds.includes(value.kind)) throw new OnceError('unreadable_message', 'A peer sent something unknown.')
  return value
}

function decodeFence(data: Uint8Array): FenceRequest {
  const { room, claim } = JSON.parse(new TextDecoder().decode(data)) as FenceRequest
  const { client, epoch, generation, instance } = claim
  const counts = [epoch, generation].every((count) => Number.isSafeInteger(count) && count >= 1)
  if (![room, client, instance].every(isStreamName) || !counts) {
    throw new OnceError('unreadable_message', 'A peer asked for no session.')
  }
  return { room, claim: { client, epoch, generation, instance } }
}

function decodeRequest(data: Uint8Array): CarriedRequest {
  const { room, position, all, parts } = JSON.parse(new TextDecoder().decode(data)) as CarriedRequest
  if (!isStreamName(room) || typeof position !== 'object' || position === null) {
    throw new OnceError('unreadable_message', 'A peer asked for no room.')
  }
  return { room, position, all: all === true, parts: typeof parts === 'string' ? parts : null }
}
