import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, defineRun } from 'onceonly/run'
import type { Address } from '../../support/place.ts'
import { openStore, sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { listen, readTask, report } from '../crash/member.ts'

/** A worker that drives innocent runs, and one that kills it. */
export interface PoisonTask {
  readonly address: Address
  readonly name: string
  readonly leaseMs: number
  readonly concurrency: number
}

export interface Begun {
  readonly kind: 'begun'
  readonly runId: string
}

export interface Parked {
  readonly kind: 'parked'
  readonly runId: string
  readonly takeovers: number
}

/** The same definitions for the test itself, which kills nothing. */
export const poison = (kill: () => void) =>
  defineRun('poison', async (run) => {
    await run.step('before', () => 'fine')
    return run.step('kill', () => {
      kill()
      return 'survived'
    })
  })

export const innocent = (begun: (runId: string) => void) =>
  defineRun('innocent', (run) =>
    run.step('work', async () => {
      begun(run.runId)
      // Long enough to be under way when the worker dies.
      await sleep(50)
      return run.runId
    }),
  )

if (import.meta.main) {
  const { address, name, leaseMs, concurrency } = readTask<PoisonTask>()
  listen()
  const begun = (runId: string) => report<Begun>({ kind: 'begun', runId })
  const kill = () => {
    begun('poison')
    process.kill(process.pid, 'SIGKILL')
  }
  await createEngine({
    ledger: quietLedger(sqlStore(openStore(address, name).store)),
    runs: [poison(kill), innocent(begun)],
    leaseMs,
    concurrency,
    pollMs: 100,
    on: (event) => {
      if (event.kind === 'parked') report<Parked>(event)
    },
  })
}
