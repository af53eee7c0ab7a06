import { BaseError } from '../../ledger/core/base-error.ts'
import { sessionLimits } from '../session-limits.ts'
import { checkConnectionOptions, checkRoomOptions } from './check-options.ts'
import { openClient } from './client.ts'
import { createLines } from './line.ts'
import type { StreamClient, StreamConnection, StreamConnectionOptions, StreamRoomOptions } from './options.ts'
import { createClientRuntime } from './runtime.ts'

/**
 * One connection for several rooms. It opens with the first room, and is closed with the last.
 *
 * @example
 * ```ts
 * import { createStreamConnection, createWebSocketTransport } from 'onceonly/stream'
 *
 * const connection = createStreamConnection({
 *   regions: ['eu', 'us'],
 *   transport: createWebSocketTransport({ url: (region) => `wss://${region}.example.com/socket` }),
 * })
 * const receiver = { message: ({ body }: { readonly body: unknown }) => console.log(body) }
 * const lobby = await connection.room('lobby', { receiver, mode: 'at-least-once' })
 * const news = await connection.room('news', { receiver, mode: 'at-least-once', from: 'head' })
 * await lobby.send('Hello')
 * await news.stop()
 * ```
 */
export function createStreamConnection(options: StreamConnectionOptions): StreamConnection {
  checkConnectionOptions(options)
  const { transport, runtime = createClientRuntime() } = options
  const bounds = { ...sessionLimits, ...options.bounds }
  const lines = createLines({ transport, runtime, bounds })
  const rooms = new Map<string, StreamClient>()
  /** Also those that are still being opened. */
  const taken = new Set<string>()
  let regions = [...options.regions]
  let stopped = false

  async function room(name: string, own: StreamRoomOptions): Promise<StreamClient> {
    checkRoomOptions(own)
    if (stopped) throw new BaseError('stopped', 'The connection was stopped.', { next: 'Create a new one.' })
    if (taken.has(name)) throw new BaseError('bad_option', `The connection is in the room ${name} already.`)
    taken.add(name)
    const left = () => {
      rooms.delete(name)
      taken.delete(name)
    }
    try {
      const client = await openClient({ ...options, ...own, regions, runtime, room: name, left }, lines)
      if (stopped) await client.stop()
      else rooms.set(name, client)
      return client
    } catch (error) {
      left()
      throw error
    }
  }

  async function stop(): Promise<void> {
    stopped = true
    await Promise.all([...rooms.values()].map((client) => client.stop()))
  }

  return {
    rooms,
    room,
    moveTo(region) {
      // Rooms that are entered from now on begin there, too.
      regions = [region, ...regions.filter((each) => each !== region)]
      for (const client of rooms.values()) client.moveTo(region)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
