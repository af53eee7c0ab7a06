import { randomUUID } from 'node:crypto'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { answer, mustEqual, readTask } from '../harness/program.ts'

/** How much memory one settled record takes, heap and external, after everything that can be collected is. */
const OUTCOME_BYTES = 200
/** Compiles the code and fills what is made once, before the first look. */
const WARM_UP = 20_000
const CALLERS = 64

const { records } = readTask<{ readonly records: number }>()
const store = memoryStore()
const ledger = createLedger({ store })
const operation = ledger.operation({ name: 'order.place', effect: 'repeatable' })
let effects = 0

async function settle(count: number): Promise<void> {
  let left = count
  const call = async () => {
    while (left-- > 0) {
      // Every key and every outcome is a text of its own, as they are when they come from requests.
      const key = randomUUID()
      await operation.run({ tenant: 'acme', caller: 'checkout', key }, { key }, () => {
        effects++
        return outcomeOf(key)
      })
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, call))
}

function outcomeOf(key: string): object {
  const bare = JSON.stringify({ receipt: key, text: '' })
  return { receipt: key, text: 'x'.repeat(OUTCOME_BYTES - bare.length) }
}

function usedBytes(): number {
  if (globalThis.gc === undefined) throw new Error('Needs --expose-gc.')
  // Twice: what finalizers free in the first is gone only after the second.
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

mustEqual('the outcome', JSON.stringify(outcomeOf(randomUUID())).length, OUTCOME_BYTES)
await settle(WARM_UP)
const before = usedBytes()
const cpu = process.cpuUsage()
await settle(records)
const { user, system } = process.cpuUsage(cpu)
const bytesPerRecord = (usedBytes() - before) / records
mustEqual('effects', effects, WARM_UP + records)
const counts = await store.queries.count({}, { timeoutMs: 60_000 })
mustEqual('settled records', counts.succeeded, WARM_UP + records)
answer({ bytesPerRecord, cpuUs: (user + system) / records })
await ledger.stop()
await store.stop()
