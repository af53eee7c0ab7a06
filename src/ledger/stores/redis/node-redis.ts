import type { RedisLink } from './link.ts'
import { reconnectMs } from './link.ts'

/**
 * The part of `createClient()` that the store borrows, of the package `redis` (or `@redis/client`) since version 5. It fits
 * by shape, as the other drivers do.
 */
export interface NodeRedisClient {
  readonly options?: { readonly socket?: object } | undefined
  duplicate(override: ReturnType<typeof settings>): NodeRedisConnection
}

interface NodeRedisConnection {
  readonly isReady: boolean
  connect(): Promise<unknown>
  sendCommand(args: readonly string[]): Promise<unknown>
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>
  destroy(): void
  on(event: string, listener: (...given: unknown[]) => void): unknown
}

function settings({ options }: NodeRedisClient) {
  return {
    // Nothing is queued and nothing is sent twice: what cannot be sent now, or whose answer is lost, fails now.
    disableOfflineQueue: true,
    socket: { ...options?.socket, reconnectStrategy: reconnectMs },
    // Answers as every version of Redis gives them, whatever the client's own commands are mapped to.
    RESP: 2,
    commandOptions: {},
    maintNotifications: 'disabled',
  } as const
}

/** A connection like the client's, in the words of the other driver. */
export function nodeRedisLink(client: NodeRedisClient): RedisLink {
  const listeners = { error: [], ready: [], close: [], message: [] } as {
    readonly [event in 'error' | 'ready' | 'close' | 'message']: ((...given: never[]) => void)[]
  }
  const emit = (event: keyof typeof listeners, ...given: unknown[]) => {
    for (const listener of listeners[event]) listener(...(given as never[]))
  }
  // Always the same function: the driver also resubscribes by itself, and calls each listener once.
  const heard = (message: string, channel: string) => emit('message', channel, message)
  let connection = open()

  function open(): NodeRedisConnection {
    const opened = client.duplicate(settings(client))
    const ifCurrent =
      (event: keyof typeof listeners) =>
      (...given: unknown[]) => {
        if (opened === connection) emit(event, ...given)
      }
    opened.on('error', ifCurrent('error'))
    opened.on('ready', ifCurrent('ready'))
    opened.on('reconnecting', ifCurrent('close'))
    // It retries until it is destroyed, and reports its errors as events.
    opened.connect().catch(() => undefined)
    return opened
  }

  function close(): void {
    try {
      connection.destroy()
    } catch {
      // It was closed already.
    }
  }

  return {
    get status() {
      return connection.isReady ? 'ready' : 'connecting'
    },
    call: (command, args) => connection.sendCommand([command, ...args]),
    subscribe: (channel) => connection.subscribe(channel, heard),
    disconnect(reconnect = false) {
      close()
      emit('close')
      if (reconnect) connection = open()
    },
    on: (event, listener) => listeners[event].push(listener),
  }
}
