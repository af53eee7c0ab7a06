import {
  createLocalExchange,
  createRegion,
  createSqlOrderLog,
  createSqlRoomLog,
  type OrderLog,
  type Region,
  type RoomLog,
} from 'onceonly/stream/server'
import type { Log } from '../logs.ts'
import type { Base } from '../store.ts'
import type { Watch } from '../watch.ts'
import type { Network } from './network.ts'
import { type RegionName, regionNames } from './words.ts'

/** Five regions in one process, each with its own log, on one store for the final order. */
export interface Regions {
  readonly order: OrderLog
  regionOf(name: RegionName): Region
  logOf(name: RegionName): RoomLog
  stop(): Promise<void>
}

export function createRegions(base: Base, network: Network, log: Log, watch: Watch): Regions {
  const exchange = createLocalExchange({ way: (from, to, room) => network.way(from, to, room) })
  const order = createSqlOrderLog({ store: base.store })
  const logs = new Map<RegionName, RoomLog>()
  const regions = new Map<RegionName, Region>()
  for (const name of regionNames) {
    const roomLog = createSqlRoomLog({ store: base.store, region: name })
    logs.set(name, roomLog)
    const region = createRegion({
      region: name,
      log: roomLog,
      order,
      exchange: exchange.of(name),
      peers: regionNames.filter((peer) => peer !== name),
      on: watch.stream,
      onFork: (room, { client, epoch, cseq, shown, hidden: { log: hiddenLog, n } }) =>
        log.warn(
          { event: 'chat.fork', region: name, room, client, epoch, cseq, shown, hidden: { log: hiddenLog, n } },
          'Two clones of a client used one number for two messages; this region shows the first',
        ),
      // A region that is cut off fails all the time, and that is what the switch is for.
      onProblem: (err) => log.debug({ event: 'chat.problem', region: name, err }, 'A region tries again'),
    })
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

function found<T>(all: ReadonlyMap<RegionName, T>, name: RegionName): T {
  const one = all.get(name)
  if (one === undefined) throw new Error(`There is no region ${name}`)
  return one
}
