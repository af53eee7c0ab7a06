import { createRequests } from '../../../src/ledger/requests.ts'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import type { Address } from '../../support/place.ts'
import { openStore } from '../../support/place.ts'
import { listen, readTask, report } from '../crash/member.ts'
import { claimOf } from './requests.ts'

/** A process that claims, marks and settles the same records as its rivals, in an order of its own. */
export interface BatchTask {
  readonly address: Address
  readonly keys: number
  readonly rounds: number
  readonly backwards: boolean
}

export interface BatchReport {
  readonly kind: 'report'
  readonly granted: number
  readonly faults: readonly string[]
}

async function main({ address, keys, rounds, backwards }: BatchTask): Promise<void> {
  const orders = listen()
  const { store } = openStore(address)
  const runtime = createRuntime()
  const { apply } = createRequests(store.claims, runtime)
  const order = Array.from({ length: keys }, (_, n) => `k${backwards ? keys - n : n + 1}`)
  const faults: string[] = []
  let granted = 0
  const one = async (key: string) => {
    // Many mark the row of another caller's attempt as awaited, some get the claim themselves.
    const { decision } = await apply(claimOf(key, runtime.newId(), { wait: true }))
    if (decision.kind !== 'first_attempt' && decision.kind !== 'reclaimed') return
    granted++
    const { lease: grant } = decision
    const { id, claimId, fence } = grant
    await apply({ kind: 'attach', id, claimId, fence, pointer: { type: 'by', id: String(process.pid) } })
    const outcome = { kept: 'outcome', data: null } as const
    const to = { state: 'failed_retryable', outcome, retryAfterMs: 0 } as const
    await apply({ kind: 'settle', id, grant, to, pointer: null })
  }
  report({ kind: 'ready' })
  await orders.next()
  for (let round = 0; round < rounds; round++) {
    const ends = await Promise.allSettled(order.map(one))
    for (const end of ends) if (end.status === 'rejected') faults.push(String(end.reason))
  }
  report<BatchReport>({ kind: 'report', granted, faults: faults.slice(0, 5) })
  process.exit(0)
}

if (import.meta.main) await main(readTask<BatchTask>())
