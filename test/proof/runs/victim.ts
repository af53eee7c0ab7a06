import { createEngine } from 'onceonly/run'
import type { Address } from '../../support/place.ts'
import { openStore, sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { listen, readTask, report } from '../crash/member.ts'
import { parcel } from './parcel.ts'

/** A process that drives parcels until it is killed. */
export interface VictimTask {
  readonly address: Address
  readonly name: string
  readonly leaseMs: number
  readonly concurrency: number
}

export interface Odd {
  readonly kind: 'odd'
  readonly text: string
}

if (import.meta.main) {
  const { address, name, leaseMs, concurrency } = readTask<VictimTask>()
  listen()
  await createEngine({
    ledger: quietLedger(sqlStore(openStore(address, name).store)),
    runs: [parcel],
    leaseMs,
    concurrency,
    pollMs: 100,
    on(event) {
      if (event.kind === 'background_failed') report<Odd>({ kind: 'odd', text: String(event.error) })
    },
  })
  report({ kind: 'ready' })
}
