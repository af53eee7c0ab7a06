import {
  createLocalExchange,
  createSqlOrderLog,
  createSqlRoomLog,
  createStreamRegion,
  type OrderLog,
  type RoomLog,
  type StreamRegion,
} from 'onceonly/stream/server'
import type { ServerParts } from '../parts.ts'
import type { Network } from './network.ts'
import type { ChatRetention } from './retention.ts'
import { type RegionName, regionNames } from './words.ts'

/** Five regions in one process, each with its own log, on one store for the final order. */
export interface Regions {
  readonly order: OrderLog
  regionOf(name: RegionName): StreamRegion
  logOf(name: RegionName): RoomLog
  stop(): Promise<void>
}

interface Parts extends Pick<ServerParts, 'base' | 'log' | 'watch'> {
  readonly network: Network
  readonly retention: ChatRetention
}

export function createRegions({ base, network, retention, log, watch }: Parts): Regions {
  const exchange = createLocalExchange({ way: (from, to, room) => network.way(from, to, room) })
  const order = createSqlOrderLog({ store: base.store })
  const logs = new Map<RegionName, RoomLog>()
  const regions = new Map<RegionName, StreamRegion>()
  for (const name of regionNames) {
    const roomLog = createSqlRoomLog({ store: base.store, region: name })
    logs.set(name, roomLog)
    const region = createStreamRegion({
      region: name,
      log: roomLog,
      order,
      exchange: exchange.of(name),
      peers: regionNames.filter((peer) => peer !== name),
      bounds: boundsOf(retention),
      on: watch.stream,
      onFork: (room, { client, epoch, cseq, shown, hidden: { log: hiddenLog, n } }) =>
        log.warn(
          { event: 'chat.fork', region: name, room, client, epoch, cseq, shown, hidden: { log: hiddenLog, n } },
          'Two clones of a client used one number for two messages; this region shows the first',
        ),
      // A region that is cut off fails all the time, and that is what the switch is for.
      onProblem: (err) => log.debug({ event: 'chat.problem', region: name, err }, 'A region tries again'),
    })
    watch.region(region)
    regions.set(name, region)
  }
  return {
    order,
    regionOf: (name) => found(regions, name),
    logOf: (name) => found(logs, name),
    async stop() {
      await Promise.all([...regions.values()].map((region) => region.stop()))
    },
  }
}

/** The log of a room is its history: a client that comes back after days resumes from it. */
function boundsOf({ messagesMs, messages, namesMs, sweepEveryMs }: ChatRetention) {
  return {
    retainMs: messagesMs,
    retainEntries: messages,
    orderRetainMs: namesMs,
    retainClientsMs: namesMs,
    trimEveryMs: sweepEveryMs,
  }
}

function found<T>(all: ReadonlyMap<RegionName, T>, name: RegionName): T {
  const one = all.get(name)
  if (one === undefined) throw new Error(`There is no region ${name}`)
  return one
}
