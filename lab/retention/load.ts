import { parentPort, workerData } from 'node:worker_threads'
import { createLedger } from 'onceonly'
import type { Address } from '../../test/support/place.ts'
import { openStore } from '../../test/support/place.ts'

/** One process of a busy service, in a thread: new keys from many callers, as fast as the store takes them. */
export interface LoadTask {
  readonly address: Address
  readonly name: string
  readonly callers: number
  readonly retainMs: number
}

/** What happened since the last report. */
export interface LoadReport {
  readonly requests: number
  readonly p99Ms: number
  readonly removed: number
  /** The time in which the sweep kept the store busy. */
  readonly sweptMs: number
  readonly failures: readonly string[]
}

const { address, name, callers, retainMs } = workerData as LoadTask
const { store, close } = openStore(address)
let latencies: number[] = []
let [removed, sweptMs] = [0, 0]
let failures: string[] = []
let over = false

const timed = {
  ...store,
  upkeep: {
    ...store.upkeep,
    async sweep(...args: Parameters<typeof store.upkeep.sweep>) {
      const beganMs = performance.now()
      const swept = await store.upkeep.sweep(...args)
      sweptMs += performance.now() - beganMs - (swept.waitedMs ?? 0)
      removed += swept.removed
      return swept
    },
  },
}
const ledger = createLedger({
  store: timed,
  on: (event) => {
    if (event.kind === 'background_failed') failures.push(`${event.what}: ${event.error}`)
  },
})
const order = ledger.operation({ name: 'order.create', effect: 'repeatable', retainMs })
let orders = 0

async function call(): Promise<void> {
  while (!over) {
    const number = orders++
    const beganMs = performance.now()
    const parts = { tenant: 'acme', caller: 'checkout', key: `${name}-${number}` }
    try {
      await order.run(parts, { number }, () => ({ receipt: `receipt of order ${number}`, cents: number % 10_000 }))
    } catch (error) {
      failures.push(String(error))
    }
    latencies.push(performance.now() - beganMs)
  }
}

const calling = Promise.all(Array.from({ length: callers }, call))

function report(): void {
  const sorted = Float64Array.from(latencies).sort()
  const p99Ms = sorted[Math.floor(sorted.length * 0.99)] ?? 0
  parentPort?.postMessage({ requests: sorted.length, p99Ms, removed, sweptMs, failures } satisfies LoadReport)
  latencies = []
  failures = []
  removed = 0
  sweptMs = 0
}

async function stop(): Promise<void> {
  over = true
  await calling
  await ledger.stop()
  await close()
  parentPort?.close()
}

parentPort?.on('message', (what: 'report' | 'stop') => {
  if (what === 'report') report()
  else void stop()
})
