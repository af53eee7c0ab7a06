import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRuntime } from '../../runtime/runtime.ts'
import { clientKey } from '../front/addresses.ts'
import type { ByteBudget, Hold } from '../front/bytes.ts'
import { createByteBudget } from '../front/bytes.ts'
import { connectionsMost } from '../front/connections.ts'
import { frontLimits } from '../front/limits.ts'
import type { PaceWatch } from '../front/pace.ts'
import { createPaceWatch } from '../front/pace.ts'
import { retryAfterMs } from '../front/retry.ts'
import type { Shares } from '../front/shares.ts'
import { createShares } from '../front/shares.ts'
import type { Answer } from '../protocol/exchange.ts'
import type { ProblemWriter } from '../protocol/problem-writer.ts'
import { Crowded } from './crowded.ts'
import type { Fingerprints } from './fingerprints.ts'
import { createFingerprints } from './fingerprints.ts'
import { gatewayLimits } from './limits.ts'
import { NO_ROOM, type Turn } from './spool.ts'
import type { Note } from './watch.ts'

/** What one gateway takes on at once, shared between the addresses of its clients. */
export interface Front {
  readonly connections: Shares
  /** Requests whose bodies are on their way. */
  readonly receiving: Shares
  /** WebSockets and streams of events: they stay for hours, and must not take the places of requests. */
  readonly streams: Shares
  /** Bodies in memory, and in temporary files. */
  readonly memory: ByteBudget
  readonly disk: ByteBudget
  /** One body in a file after the other, address by address. */
  readonly large: Shares
  readonly pace: PaceWatch
  readonly fingerprints: Fingerprints
}

export function createFront(): Front {
  const { receiving, streams, spooledBytes, spoolShare, largeQueue, largeQueueMs } = gatewayLimits
  const { placeShare: share, bodyBytes, bodyShare, paceEveryMs } = frontLimits
  const connections = connectionsMost()
  return {
    connections: createShares({ most: () => connections, share }),
    receiving: createShares({ most: () => receiving, share }),
    streams: createShares({ most: () => streams, share }),
    memory: createByteBudget({ totalBytes: bodyBytes, share: bodyShare }),
    disk: createByteBudget({ totalBytes: spooledBytes, share: spoolShare }),
    large: createShares({
      most: () => 1,
      share: 1,
      queue: { most: largeQueue, waitMs: largeQueueMs, runtime: createRuntime() },
    }),
    pace: createPaceWatch(paceEveryMs),
    fingerprints: createFingerprints(),
  }
}

/** How much a gateway has under way. */
export interface GatewayLoad {
  readonly connections: number
  /** Requests whose bodies are on their way. */
  readonly receiving: number
  /** WebSockets and streams of events. */
  readonly streams: number
  /** Requests at upstreams, and those that wait for a place there. */
  readonly underWay: number
  readonly waiting: number
  /** Bodies in memory, and in temporary files. */
  readonly bodyBytes: number
  readonly spooledBytes: number
}

export function loadOf(front: Front, upstreams: Iterable<{ readonly places: Shares }>): GatewayLoad {
  let [underWay, waiting] = [0, 0]
  for (const { places } of upstreams) {
    underWay += places.underWay
    waiting += places.waiting
  }
  return {
    connections: front.connections.underWay,
    receiving: front.receiving.underWay,
    streams: front.streams.underWay,
    underWay,
    waiting,
    bodyBytes: front.memory.heldBytes,
    spooledBytes: front.disk.heldBytes,
  }
}

/** One request that was taken in. */
export interface Intake {
  readonly front: Front
  /** The share it counts for. */
  readonly key: string
  /** What it holds of the memory and the files for bodies. */
  readonly memory: Hold
  readonly disk: Hold
  /** For the moment in which all of a large body is in memory. */
  readonly turn: Turn
  /** While its body is looked at in the thread. */
  looking: Promise<unknown> | null
  /** What becomes known of it. */
  readonly note: Note
}

/**
 * Before anything of the body is read: whether there is room for it. What it declares is held for it at once, so that a body
 * that was begun can also be ended.
 *
 * @param mostBytes of the body that are ever in memory
 * @returns null where there is none
 */
export function takeIn(
  front: Front,
  {
    message,
    response,
    note,
  }: { readonly message: IncomingMessage; readonly response: ServerResponse; readonly note: Note },
  trustForwarded: boolean,
  mostBytes: number,
): Intake | null {
  const key = clientKey(message, trustForwarded)
  if (!hasContent(message)) return { front, key, ...NO_ROOM, looking: null, note }
  const [memory, disk] = [front.memory.hold(key), front.disk.hold(key)]
  const turn = turnOf(front, key, () => intake.looking)
  const intake: Intake = { front, key, memory, disk, turn, looking: null, note }
  if (!front.receiving.enter(key)) return null
  let onItsWay = true
  const arrived = () => {
    if (onItsWay) front.receiving.leave(key)
    onItsWay = false
  }
  if (!intake.memory.cover(Math.min(Number(message.headers['content-length'] ?? 0), mostBytes))) {
    arrived()
    return null
  }
  message.once('end', arrived)
  response.once('close', arrived)
  return intake
}

function turnOf({ large }: Front, key: string, looking: () => Promise<unknown> | null): Turn {
  const leave = () => large.leave(key)
  return {
    take: () =>
      new Promise((resolve) => {
        large.whenFree(
          key,
          () => resolve(true),
          () => resolve(false),
        )
      }),
    give() {
      const end = looking()
      if (end === null) leave()
      else void end.then(leave, leave)
    },
  }
}

export function hasContent({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** The answer to a request that there is no room for. */
export function tooBusy(problems: ProblemWriter, note: Note, { message: detail }: Error = new Crowded()): Answer {
  note.decision = 'overloaded'
  return problems.write('too-busy', { detail: `${detail} Nothing was done.`, retryAfterMs: retryAfterMs() })
}
