import { setTimeout as sleep } from 'node:timers/promises'
import type { Queue, QueueOptions } from 'onceonly/run'
import { createEngine, defineQueue, defineRun } from 'onceonly/run'
import type { Address, CrashStore } from '../../support/place.ts'
import { openStore, sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { listen, readTask, report } from '../crash/member.ts'

/** A process that takes runs of a crowded queue until it is killed. */
export interface CrowdTask {
  readonly address: Address
  readonly name: string
  readonly concurrency: number
  readonly queue: QueueOptions
}

/** Longer than a busy machine keeps a worker from its heartbeat, so that only the dead lose their runs. */
export const LEASE_MS = 3_000

export const crowdQueue = (options: QueueOptions): Queue => defineQueue('crowd', options)

/** Its journal says by the store's clock when it was at work: the results of its first and last step. */
export function crowdRun(store: CrashStore) {
  const now = () => store.clock.now({ timeoutMs: 60_000 })
  return defineRun('crowd', async (run, input: { readonly workMs: number }) => {
    const from = await run.step('enter', now)
    await run.step('work', () => sleep(input.workMs, null))
    return { from, to: await run.step('leave', now) }
  })
}

if (import.meta.main) {
  const { address, name, concurrency, queue } = readTask<CrowdTask>()
  listen()
  const { store } = openStore(address, name)
  const run = crowdRun(store)
  await createEngine({
    ledger: quietLedger(sqlStore(store)),
    runs: [run],
    queues: [crowdQueue(queue)],
    leaseMs: LEASE_MS,
    concurrency,
    pollMs: 500,
    on(event) {
      if (event.kind === 'background_failed') report({ kind: 'odd', text: String(event.error) })
    },
  })
  report({ kind: 'ready' })
}
