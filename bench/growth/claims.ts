import type { Store } from 'onceonly'
import { createLedger, succeeded } from 'onceonly'
import type { Figures } from '../harness/figures.ts'
import { drive } from '../harness/load.ts'
import { orderOf, partsOf, receiptOf } from '../harness/orders.ts'
import { mustEqual } from '../harness/program.ts'

export interface ClaimsTask {
  readonly callers: number
  readonly warmUpMs: number
  readonly warmUpRequests?: number
  readonly measureMs: number
  readonly mostRequests: number
  readonly sweeping: boolean
  /** Keys of no other round: the large store is used by all of them. */
  readonly round: string
}

export interface Claimed {
  readonly claims: number
  readonly swept: number
  readonly figures: Figures
}

/** Claims new keys one after the other, and settles each lease behind the caller's back, as a busy service would. */
export async function measureClaims(store: Store, task: ClaimsTask, serverCpuMs?: () => number): Promise<Claimed> {
  const ledger = createLedger({ store, background: false })
  const operation = ledger.operation({ name: `growth.${task.round}`, effect: 'repeatable' })
  const settling = new Set<Promise<void>>()
  let claims = 0
  const request = async (number: number) => {
    const order = orderOf(number)
    const claimed = await operation.claim(partsOf(number), order)
    if (claimed.kind !== 'first_attempt') throw new Error(`A new key was answered with ${claimed.kind}.`)
    claims++
    const settled = claimed.lease.settle(succeeded(receiptOf(order)))
    settling.add(settled)
    void settled.finally(() => settling.delete(settled))
  }
  const sweep = task.sweeping ? startSweep(ledger.upkeep.sweep) : null
  const { requests, figures } = await drive({ ...task, serverCpuMs, request })
  const swept = (await sweep?.stop()) ?? { removed: 0, rounds: 0 }
  await Promise.all(settling)
  await ledger.stop()
  mustEqual('claims', claims, requests)
  return { claims, swept: swept.removed, figures: { ...figures, swept: swept.removed, sweeps: swept.rounds } }
}

/** A ledger waits a minute between two rounds. Here there is nearly always one under way. */
const PAUSE_MS = 100

function startSweep(round: () => Promise<number>) {
  const swept = { removed: 0, rounds: 0 }
  let over = false
  const running = (async () => {
    while (!over) {
      swept.removed += await round()
      swept.rounds++
      await new Promise((resolve) => void setTimeout(resolve, PAUSE_MS))
    }
  })()
  return {
    stop: async () => {
      over = true
      await running
      return swept
    },
  }
}
