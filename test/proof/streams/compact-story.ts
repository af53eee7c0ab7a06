import { isDeepStrictEqual } from 'node:util'
import type * as Codec from '../../../src/streams/protocol/codec.ts'
import { decodeServerFrame } from '../../../src/streams/protocol/decode.ts'
import type { Delivered, MessageIdentity, ServerFrame } from '../../../src/streams/protocol/protocol.ts'
import { createRandom, type Random } from '../../../src/testing/random.ts'

const FRAMES = 1_500
const CHANNELS = [0, 3] as const
const FAR = 2 ** 52

/**
 * Null when all frames of this story were read as they are read from JSON, and many of them were bytes; else where they
 * were not.
 */
export function compareForms({ createClientCodec, createServerCodec }: typeof Codec, seed: number): string | null {
  const random = createRandom(seed)
  const [client, server] = [createClientCodec('binary'), createServerCodec('binary')]
  for (const channel of CHANNELS) {
    const hello = { version: 1, room: 'room', client: 'me', epoch: 1, generation: 1, instance: 'i' }
    server.read(client.write(channel, { kind: 'hello', ...hello }))
  }
  const stories = new Map(CHANNELS.map((channel) => [channel, createStory(random)]))
  let bytes = 0
  for (let step = 0; step < FRAMES; step++) {
    const channel = random.pick(CHANNELS)
    const frame = stories.get(channel)?.(step)
    if (frame === undefined) continue
    const wanted = { ...decodeServerFrame(JSON.stringify(frame)), channel }
    const data = server.write(channel, frame)
    if (typeof data !== 'string') bytes += 1
    const read = client.read(data)
    if (!isDeepStrictEqual(read, wanted)) return `seed ${seed}, step ${step}: ${JSON.stringify(read)}`
  }
  return bytes < FRAMES / 4 ? `seed ${seed}: ${bytes} of ${FRAMES} frames were bytes` : null
}

/** What a session is sent: mostly what follows, and now and then anything else. */
function createStory(random: Random): (step: number) => ServerFrame {
  const have: Record<string, number> = {}
  const numbers = new Map<string, number>()
  const recent: MessageIdentity[] = []
  let generation = 0
  let sent = 0
  let ordered = 0
  let logs = 3

  const count = (least: number) => least + (random.chance(0.02) ? FAR : random.below(3))
  const logName = () => `log-${random.below(logs)}.1`

  /** No more logs than one may have. */
  const position = () => Object.fromEntries(Object.entries(have).slice(0, 60))

  function entry(): Delivered {
    // More than have a number.
    const client = random.chance(0.2) ? `pub~server~${random.below(200)}` : `p-${random.below(400)}`
    const log = logName()
    const n = random.chance(0.9) ? (have[log] ?? 0) + 1 : count(1)
    const cseq = random.chance(0.9) ? (numbers.get(client) ?? 0) + 1 : count(1)
    const seen = random.chance(0.7) ? position() : { ...position(), [logName()]: count(1) }
    if (n < FAR) have[log] = n
    if (cseq < FAR) numbers.set(client, cseq)
    const identity = { client, epoch: random.chance(0.95) ? 1 : 2, cseq }
    recent.push(identity)
    if (random.chance(0.05)) return { kind: 'copy', log, n, ...identity, seen }
    return {
      kind: 'message',
      log,
      n,
      ...identity,
      seen,
      after: random.chance(0.5) ? null : { log: logName(), n: count(1) },
      replyTo: random.chance(0.2) ? random.pick(recent) : null,
      acceptedAtMs: 1_760_000_000_000 + random.below(1_000_000),
      ...(random.chance(0.1) ? { writtenAtMs: 1_760_000_000_000 } : {}),
      body: random.pick(['text', { text: 'ü€' }, null, 7]),
    }
  }

  function deliver(): ServerFrame {
    const after = random.chance(0.95) ? sent : count(0)
    const entries = Array.from({ length: random.below(4) }, entry)
    sent = after + entries.length
    return { kind: 'deliver', generation: random.chance(0.97) ? Math.max(1, generation) : 9, after, entries }
  }

  function order(): ServerFrame {
    const after = random.chance(0.9) ? ordered : random.below(50)
    const from = random.chance(0.9) ? after + 1 : after + 1 + random.below(5)
    const identities = Array.from({ length: 1 + random.below(4) }, () => random.pick(recent))
    ordered = from + identities.length - 1
    return { kind: 'order', generation: Math.max(1, generation), after, from, identities }
  }

  return (step) => {
    if (step > 1_300) logs = 90
    if (generation === 0 || random.chance(0.01)) {
      generation += 1
      sent = random.below(20)
      ordered = random.below(20)
      return { kind: 'resumed', generation, position: position(), ordered, floor: 1, last: null, sent }
    }
    return recent.length > 0 && random.chance(0.3) ? order() : deliver()
  }
}
