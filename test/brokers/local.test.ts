import type { SqlStore } from 'onceonly'
import { createLocalBus } from 'onceonly/local'
import { createPlace, placeKinds, skipOf, sqlStore } from '../crash/place.ts'
import type { BrokerClient } from './suite.ts'
import { proveBroker } from './suite.ts'

const LEASE_MS = 1_500

for (const kind of placeKinds) {
  proveBroker({
    name: `local on ${kind}`,
    skip: skipOf(kind),
    async open() {
      const place = await createPlace(kind)
      return {
        connect: async () => clientOn(sqlStore(place.another())),
        end: () => place.end(),
      }
    },
  })
}

/** A store of its own for every client, as another process has it. */
function clientOn(store: SqlStore): BrokerClient {
  const bus = createLocalBus({ store, leaseMs: LEASE_MS, retryMs: 100 })
  return {
    publisher: bus,
    subscriber: bus,
    crash: () => store.stop(),
    stop: () => bus.stop(),
  }
}
