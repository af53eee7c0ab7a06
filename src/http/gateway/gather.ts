import type { IncomingMessage } from 'node:http'
import { createPieces } from '../front/pieces.ts'
import type { Intake } from './intake.ts'
import { gatewayLimits } from './limits.ts'
import { SlowBody, SpoolFull } from './spool.ts'

/** The body of a request that is only passed on, from its first byte to its last. */
export interface Gathering {
  /** What came before its upstream was asked. */
  readonly first: Uint8Array
  /** That was all of it. */
  readonly isWhole: boolean
}

export interface GatherOptions {
  readonly message: IncomingMessage
  readonly intake: Intake
  /** For so long nothing of it may come. */
  readonly pauseMs: number
  /** Enough has come to ask the upstream. From here on the rest waits in the connection until it is read. */
  readonly ready: (gathering: Gathering) => void
  /** It comes too slowly, or there is no room for it; also after `ready`. */
  readonly failed: (error: SlowBody | SpoolFull) => void
}

/**
 * Reads the beginning of a body, so that a client that sends slowly holds no connection of the upstream meanwhile, and watches
 * how fast the rest comes.
 *
 * @returns ends it, whether it is whole or not
 */
export function gather({ message, intake, pauseMs, ready, failed }: GatherOptions): () => void {
  const { gatheredBytes, gatherMs, bodyGraceMs: graceMs, bodyBytesPerSecond: bytesPerSecond } = gatewayLimits
  const pieces = createPieces()
  let bytes = 0
  let isReady = false
  let timer: NodeJS.Timeout | undefined

  function take(chunk: Buffer): void {
    bytes += chunk.length
    if (isReady) return
    pieces.add(chunk)
    if (!intake.memory.cover(bytes)) fail(new SpoolFull())
    else if (bytes >= gatheredBytes) enough(false)
  }
  function enough(isWhole: boolean): void {
    if (isReady) return
    isReady = true
    clearTimeout(timer)
    if (!isWhole) message.pause()
    ready({ first: pieces.takeWhole(), isWhole })
  }
  function whole(): void {
    end()
    enough(true)
  }
  function fail(error: SlowBody | SpoolFull): void {
    end()
    isReady = true
    pieces.take()
    failed(error)
  }
  const unwatch = intake.front.pace.watch({
    pace: { graceMs, bytesPerSecond, pauseMs },
    bytes: () => bytes,
    isHeld: () => message.isPaused(),
    tooSlow: () => fail(new SlowBody('The body came too slowly.')),
  })
  function end(): void {
    clearTimeout(timer)
    unwatch()
    message.off('end', whole)
  }

  message.on('error', () => {})
  if (message.headers['content-length'] === undefined) timer = setTimeout(enough, gatherMs, false)
  message.on('data', take).once('end', whole)
  return end
}
