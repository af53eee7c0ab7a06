import { createMemoryOrderLog } from '../../../src/streams/log/memory-order.ts'
import type { OrderLog } from '../../../src/streams/ports.ts'
import { createRandom, type Random } from '../../../src/testing/random.ts'

const MINUTE_MS = 60_000
const STEPS = 30

export interface ComparedOrders {
  /** As several regions have it, on one store. */
  readonly processes: readonly OrderLog[]
  readonly clock: { nowMs(): number; advance(ms: number): Promise<void> }
  readonly seed: number
}

/** Null when they answered as the order in memory does on this history, else where they did not. */
export async function compareOrders({ processes, clock, seed }: ComparedOrders): Promise<string | null> {
  const random = createRandom(seed)
  const model = createMemoryOrderLog({ nowMs: clock.nowMs })
  const next = createOrderHistory(random, `order-${seed}`)
  for (let step = 0; step < STEPS; step++) {
    if (random.chance(0.2)) await clock.advance(random.pick([MINUTE_MS, 3 * MINUTE_MS]))
    const ask = next()
    const [got, wanted] = [await answered(ask(random.pick(processes))), await answered(ask(model))]
    if (got !== wanted) return `seed ${seed}, step ${step}: ${got} is not ${wanted}`
  }
  return null
}

async function answered(asked: Promise<unknown>): Promise<string> {
  return asked.then(JSON.stringify, (error: unknown) => `error ${String(error)}`)
}

/** What regions might ask of an order; the same question is put to both. */
function createOrderHistory(random: Random, room: string): () => (order: OrderLog) => Promise<unknown> {
  let fence = 1
  let highest = 1

  function identities() {
    return Array.from({ length: random.below(5) }, () => {
      highest += random.chance(0.5) ? 1 : 0
      return { client: random.pick(['ann', 'bob']), epoch: 1, cseq: 1 + random.below(highest) }
    })
  }

  return () => {
    const dice = random.below(10)
    if (dice < 3) {
      const holder = random.pick(['eu', 'us'])
      return async (order) => {
        const claimed = await order.claim(room, holder, 2 * MINUTE_MS)
        if (claimed.kind === 'held') fence = claimed.fence
        return claimed
      }
    }
    if (dice < 8) {
      const position = { [random.pick(['eu.1', 'us.1'])]: random.below(20) }
      const batch = { fence: fence - (random.chance(0.2) ? 1 : 0), identities: identities(), position }
      return async (order) => [await order.append(room, batch), (await order.read(room, 0, 1_000)).at(-1)]
    }
    const [after, most] = [random.below(6), 1 + random.below(6)]
    return (order) => order.read(room, after, most)
  }
}
