import type { AddressInfo } from 'node:net'
import { sqliteStore } from 'onceonly/sqlite'
import { createSqlOrderLog, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { serve } from '../../support/streams/serve.ts'
import { quick } from '../../support/streams/world.ts'

/** What a test measures: a region as a process of its own, which says how much memory it holds whenever it is asked. */
export interface Held {
  readonly heapBytes: number
  readonly externalBytes: number
  readonly rssBytes: number
  readonly sessions: number
}

const store = sqliteStore(process.argv[2] ?? '')
const region = createStreamRegion({
  region: 'eu',
  log: createSqlRoomLog({ store, region: 'eu' }),
  order: createSqlOrderLog({ store }),
  // Credit limits nothing here, because a client that stops reading may keep granting it; nor is a client dropped for
  // silence. The newest entries, which all clients share, are few: what is measured belongs to the clients.
  bounds: { ...quick, aheadEntries: 1_000_000, aheadBytes: 1_000_000_000, tailEntries: 16, silenceMs: 600_000 },
})
const server = await serve(region, 0)

process.on('message', () => {
  for (let n = 0; n < 3; n++) globalThis.gc?.()
  const { heapUsed: heapBytes, external: externalBytes, rss: rssBytes } = process.memoryUsage()
  process.send?.({ heapBytes, externalBytes, rssBytes, sessions: region.sessions } satisfies Held)
})
process.on('disconnect', () => process.exit())
process.send?.((server.address() as AddressInfo).port)
