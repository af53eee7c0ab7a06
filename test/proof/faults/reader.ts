import { createLedger } from 'onceonly'
import type { Address } from '../../support/place.ts'
import { openStore, who } from '../../support/place.ts'
import { listen, readTask, tell } from '../crash/member.ts'

/** A process that asks about a record whenever it is told to, and tells how long that took. */
export interface ReaderTask {
  readonly address: Address
  readonly operation: string
  readonly key: string
}

export interface ReadLine {
  readonly kind: 'read'
  readonly state: string | null
  readonly tookMs: number
}

const { address, operation, key } = readTask<ReaderTask>()
const orders = listen()
const { store } = openStore(address)
const once = createLedger({ store, background: false })
for (;;) {
  await orders.next()
  const startedMs = performance.now()
  const view = await once.get({ ...who(key), operation })
  tell<ReadLine>({ kind: 'read', state: view?.record.state ?? null, tookMs: performance.now() - startedMs })
}
