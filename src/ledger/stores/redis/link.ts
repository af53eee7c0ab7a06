import { SECOND } from '../../core/limits.ts'
import { backoffMs } from '../../core/retry.ts'

/**
 * A connection as the store uses it: the part of `ioredis` that it borrows. `new Redis(…)` and `new Cluster(…)` fit it by
 * shape, so that the package neither imports nor pins a driver; other drivers are put into its words.
 */
export interface RedisLink {
  readonly status: string
  /** The arguments as one list: a driver copies it once, and spreads nothing. */
  call(command: string, args: string[]): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'ready' | 'close', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
}

const RECONNECT = { baseMs: 50, capMs: 1 * SECOND }
export const reconnectMs = (times: number): number => backoffMs(times, RECONNECT, Math.random())
