import { canonicalValue } from '../../ledger/core/canonical.ts'
import { sha256Base64Url } from '../../ledger/core/digest.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import { HOUR } from '../../ledger/core/limits.ts'
import { badOption, checkOptions, wholeOption } from '../../ledger/core/option-names.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { StreamBounds } from '../bounds.ts'
import { StreamError } from '../client/errors.ts'
import type { SendRequest, SendResult } from '../ports.ts'
import { decodeSendFrame } from '../protocol/decode.ts'
import { isStreamName } from '../protocol/fields.ts'
import { covers } from '../protocol/position.ts'
import type { LogPlace, MessageIdentity, Position } from '../protocol/protocol.ts'
import { identityText } from '../protocol/protocol.ts'
import { PUBLISHED, PUBLISHER_CHARS_MOST, publisherName } from '../protocol/published.ts'
import type { RegionRooms } from './region-rooms.ts'
import type { Room } from './room.ts'

export interface PublishOptions {
  /**
   * Names the message: publishing again under the same id, from any process and in any region, stores nothing new. Ids of
   * another `from` or room are others.
   */
  readonly id: string
  /** The name of the publisher, for people: at most 32 letters, digits, dots, dashes. @default 'server' */
  readonly from?: string
  /** The message that this one replies to. @default none */
  readonly replyTo?: MessageIdentity
  /** What must come first, where that is known better. @default everything that this region has when the call is made */
  readonly seen?: Position
  /** How long to wait until it is durable. Then it may become durable all the same. @default 4_000, `publishMs` of the region */
  readonly timeoutMs?: number
}

/** A message of a server that is durable in its region. */
export interface PublishedMessage {
  readonly identity: MessageIdentity
  /** Null where it was published so long ago that its place is not remembered. */
  readonly place: LogPlace | null
  /** It stood there already. */
  readonly duplicate: boolean
}

export interface Publishing {
  publish(room: string, body: unknown, options: PublishOptions): Promise<PublishedMessage>
  stop(): void
}

const publishOptions = { id: true, from: true, replyTo: true, seen: true, timeoutMs: true } satisfies Record<
  keyof PublishOptions,
  true
>

/** 132 bits: no second id with the same digest can be found. */
const DIGEST_CHARS = 22
const ID_CHARS_MOST = 1_024
/** Longer than any request waits; a timer takes no more than some weeks. */
const TIMEOUT_MOST_MS = HOUR

/**
 * What servers say in rooms. A message's identity is made of its id, so that every rule about identities holds for it: a
 * region writes it once, regions that were apart see copies of one message, and another body under the id is a fork.
 */
export function createPublishing(parts: {
  readonly rooms: RegionRooms
  readonly runtime: Runtime
  readonly bounds: StreamBounds
}): Publishing {
  const { rooms, runtime, bounds } = parts
  const waiting = new Set<(error: OnceError) => void>()
  let stopped = false

  /** Settles with the answer, or after so long: then it may become durable all the same. */
  function within<T>(name: string, timeoutMs: number, work: (over: AbortSignal) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const over = new AbortController()
    const late = () => reject(unanswered(`${name} did not store the message within ${timeoutMs} ms.`))
    const timer = runtime.setTimer(timeoutMs, late, true)
    waiting.add(reject)
    work(over.signal).then(resolve, reject)
    return promise.finally(() => {
      timer.cancel()
      over.abort()
      waiting.delete(reject)
    })
  }

  async function store(
    name: string,
    message: Omit<SendRequest, 'seen'>,
    { given, over }: { readonly given: Position | undefined; readonly over: AbortSignal },
  ): Promise<SendResult> {
    const opening = rooms.open(name)
    if (opening === null) {
      throw new OnceError('retry_later', 'The region has as many rooms open as it can keep.', { retryAfterMs: 1_000 })
    }
    const { room } = await opening
    const seen = given ?? room.position
    await reached(room, seen, over)
    if (room.full)
      throw new OnceError('retry_later', `Too much waits to be written to ${name}.`, { retryAfterMs: 1_000 })
    const { promise, resolve } = Promise.withResolvers<SendResult>()
    const request: SendRequest = { ...message, seen }
    room.send({ request, bytes: JSON.stringify(request).length, answer: resolve })
    return promise
  }

  async function publish(name: string, body: unknown, options: PublishOptions): Promise<PublishedMessage> {
    checkOptions('region.publish', options, publishOptions)
    const message = requestOf(name, body, options)
    const timeoutMs = wholeOption(
      'region.publish',
      'timeoutMs',
      options.timeoutMs ?? bounds.publishMs,
      1,
      TIMEOUT_MOST_MS,
    )
    if (stopped) throw new OnceError('stopped', 'The region was stopped.', { next: 'Publish in another region.' })
    const result = await within(name, timeoutMs, (over) => store(name, message, { given: options.seen, over }))
    const { client, epoch, cseq } = message
    const identity = { client, epoch, cseq }
    switch (result.kind) {
      case 'accepted':
        return { identity, place: result.place, duplicate: result.duplicate }
      case 'fork':
        throw new OnceError('key_reused', `${name} has another message under the id ${JSON.stringify(options.id)}.`, {
          next: 'Publish a new message under a new id; the stored one was left untouched.',
        })
      case 'target-unknown': {
        const target = message.replyTo === null ? '' : identityText(message.replyTo)
        throw new StreamError('target_unknown', `${name} has no message ${target} to reply to.`, {
          details: { replyTo: message.replyTo },
        })
      }
      case 'fenced':
      case 'gap':
        throw new OnceError('store_unavailable', `The log answered ${result.kind} to a message without a session.`)
    }
  }

  return {
    publish,
    stop() {
      stopped = true
      for (const reject of waiting) reject(unanswered('The region was stopped.'))
    },
  }
}

function requestOf(room: string, body: unknown, { id, from = 'server', replyTo, seen = {} }: PublishOptions) {
  if (!isStreamName(room)) throw new OnceError('bad_input', `${JSON.stringify(room)} is not the name of a room.`)
  if (typeof id !== 'string' || id === '' || id.length > ID_CHARS_MOST || !id.isWellFormed()) {
    badOption('region.publish', 'id', `must be a text of at most ${ID_CHARS_MOST} characters`)
  }
  if (!isStreamName(from) || from.length > PUBLISHER_CHARS_MOST) {
    badOption('region.publish', 'from', `must be a name of at most ${PUBLISHER_CHARS_MOST} characters`)
  }
  const text = frameText(body, replyTo ?? null, seen)
  // What a client could not send is too large for the frames of others, too.
  const decoded = decodeSendFrame(text)
  if (decoded.kind === 'bad') throw new OnceError('bad_input', `The message cannot be published: ${decoded.reason}.`)
  const { frame } = decoded
  const digest = sha256Base64Url(canonicalOf([frame.body, frame.replyTo]))
  // Names of streams have no underscore.
  const ofId = sha256Base64Url(id).slice(0, DIGEST_CHARS).replaceAll('_', '.')
  const client = publisherName(from, ofId)
  return { client, ...PUBLISHED, generation: null, replyTo: frame.replyTo, body: frame.body, digest }
}

function frameText(body: unknown, replyTo: MessageIdentity | null, seen: Position): string {
  try {
    return JSON.stringify({ kind: 'send', cseq: 1, seen, replyTo, body: body ?? null })
  } catch (cause) {
    throw new OnceError('bad_input', 'The message cannot be written as JSON.', { cause })
  }
}

function canonicalOf(value: unknown): string {
  try {
    return canonicalValue(value)
  } catch (cause) {
    throw new OnceError('bad_input', 'The message cannot be fingerprinted.', { cause })
  }
}

function unanswered(text: string): OnceError {
  return new OnceError('retry_later', text, {
    applied: 'maybe',
    next: 'Publish it again with the same id: what is stored is not stored twice.',
  })
}

/** When the region has everything that the message names as its causes; never, once nothing waits for it any more. */
function reached(room: Room, seen: Position, over: AbortSignal): Promise<void> | void {
  if (covers(room.position, seen)) return
  return new Promise((resolve) => {
    const unwatch = room.watch(() => {
      if (!covers(room.position, seen)) return
      unwatch()
      resolve()
    })
    over.addEventListener('abort', unwatch)
  })
}
