import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { streamLimits } from '../limits.ts'
import type { Exchange, RegionPeer } from '../ports.ts'
import { ExchangeError } from './errors.ts'

/** The state of the way between two regions, for one room. */
export interface ExchangeWay {
  /** Nothing passes. */
  readonly cut: boolean
  /** In each direction. */
  readonly delayMs: number
}

export interface LocalExchangeOptions {
  /** Called for every message, so that a demo or a test can break the network. @default nothing is broken */
  way?(from: string, to: string, room: string): ExchangeWay
  /** Time and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

/** Regions of one process. */
export interface LocalExchange {
  /** The exchange of one of them. */
  of(region: string): Exchange
}

const OPEN: ExchangeWay = { cut: false, delayMs: 0 }

/**
 * Joins regions of one process, for tests and demos.
 *
 * @example
 * ```ts
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createLocalExchange, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
 *
 * const store = sqliteStore('rooms.db')
 * const exchange = createLocalExchange()
 * const regions = ['eu', 'us'].map((region) =>
 *   createStreamRegion({
 *     region,
 *     peers: ['eu', 'us'].filter((peer) => peer !== region),
 *     log: createSqlRoomLog({ store, region }),
 *     exchange: exchange.of(region),
 *   }),
 * )
 * ```
 */
export function createLocalExchange(options: LocalExchangeOptions = {}): LocalExchange {
  const { way = () => OPEN, runtime = createRuntime() } = options
  const peers = new Map<string, RegionPeer>()

  /** Asynchronous even without a delay: a caller is never called back from inside its own call. */
  function carry<T>(from: string, to: string, room: string, message: T): Promise<T> {
    const { cut, delayMs } = way(from, to, room)
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (cut) {
      // As on a real network: no answer until the caller times out.
      const lost = () => reject(new ExchangeError('broker_unavailable', `${to} does not answer ${from}.`))
      runtime.setTimer(streamLimits.pullMs, lost, true)
    } else if (delayMs > 0) runtime.setTimer(delayMs, () => resolve(message), true)
    else runtime.soon(() => resolve(message))
    return promise
  }

  function peerOf(name: string): RegionPeer {
    const peer = peers.get(name)
    if (peer === undefined) throw new ExchangeError('broker_unavailable', `${name} is not running.`)
    return peer
  }

  /** There and back. */
  async function ask<Q extends { readonly room: string }, A>(
    from: string,
    to: string,
    request: Q,
    answer: (peer: RegionPeer, request: Q) => Promise<A>,
  ): Promise<A> {
    const arrived = await carry(from, to, request.room, request)
    return carry(to, from, request.room, await answer(peerOf(to), arrived))
  }

  return {
    of: (region) => ({
      pull: (peer, request) => ask(region, peer, request, (to, arrived) => to.pull(arrived)),
      fence: (peer, request) => ask(region, peer, request, (to, arrived) => to.fence(arrived)),
      hint(hint) {
        for (const [name, peer] of peers) {
          if (name === region || way(region, name, hint.room).cut) continue
          void carry(region, name, hint.room, hint).then(
            (arrived) => peer.hinted(arrived),
            () => {},
          )
        }
      },
      serve(peer) {
        peers.set(region, peer)
        return {
          async stop() {
            if (peers.get(region) === peer) peers.delete(region)
          },
        }
      },
    }),
  }
}
