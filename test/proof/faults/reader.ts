import { createLedger } from 'onceonly'
import type { Address } from '../../support/place.ts'
import { openStore, who } from '../../support/place.ts'
import { listen, readTask, report } from '../crash/member.ts'

/** A process that reads a record on every order. */
export interface ReaderTask {
  readonly address: Address
  readonly operation: string
  readonly key: string
}

export interface ReadLine {
  readonly kind: 'read'
  readonly state: string | null
}

const { address, operation, key } = readTask<ReaderTask>()
const orders = listen()
const { store } = openStore(address)
const once = createLedger({ store, background: false })
for (;;) {
  await orders.next()
  const view = await once.get({ ...who(key), operation })
  report<ReadLine>({ kind: 'read', state: view?.record.state ?? null })
}
