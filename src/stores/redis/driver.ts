/**
 * The part of `ioredis` that the store borrows. `new Redis(…)` fits it by shape, so that the package neither imports nor
 * pins a driver. The store never sends through the client that it was given: it makes connections of its own from it,
 * with settings under which no command is kept for later or sent twice behind our back.
 */
export interface RedisClient {
  readonly status: string
  call(command: string, ...args: (string | number)[]): Promise<unknown>
  duplicate(override: RedisOverride): RedisClient
  subscribe(channel: string): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'ready' | 'close', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
}

export interface RedisOverride {
  readonly lazyConnect: boolean
  /** A command that cannot be sent now fails now: its caller has a deadline, and knows how to repeat it. */
  readonly enableOfflineQueue: boolean
  /** A command whose answer was lost may have taken effect; only its caller knows whether to send it again. */
  readonly autoResendUnfulfilledCommands: boolean
  /** Nor does it wait for another connection to be told so. */
  readonly maxRetriesPerRequest: number
  retryStrategy(times: number): number
}
