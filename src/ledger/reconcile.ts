import type { Context } from './context.ts'
import { limits } from './core/limits.ts'
import type { LedgerRecord } from './core/record.ts'
import type { Declared } from './declared.ts'
import type { Page } from './store/port.ts'

/** Applies what time has decided, without waiting for a new claim to arrive. It holds no inputs and re-runs nothing. */
export interface Reconciler {
  lapsedLeases(): Promise<void>
  unknownOutcomes(): Promise<void>
}

const call = { timeoutMs: limits.storeCallMs }
const STEPS_PER_ROUND = 10

export function createReconciler(context: Context, declared: ReadonlyMap<string, Declared>): Reconciler {
  const { store, requests, events, prober, runtime, life } = context
  /** Below this fence nothing is in progress any more. */
  let lowWater = 0
  /** Where the last round over the unknowns stopped: however many there are, each one has its turn. */
  let cursor: string | null = null

  async function reconcile({ id, identity }: LedgerRecord): Promise<void> {
    const { decision } = await requests.apply({ kind: 'reconcile', id })
    if (decision.kind === 'lapsed') events.emit({ kind: 'lapsed', identity, to: decision.to })
    if (decision.kind === 'abandoned') events.emit({ kind: 'abandoned_unknown', identity })
  }

  async function lookAt(record: LedgerRecord, now: number): Promise<void> {
    if (record.state !== 'unknown') return
    if (record.abandonAt <= now) return reconcile(record)
    const op = declared.get(record.identity.operation)
    if (op?.probe === undefined || record.probeAt > now) return
    try {
      await prober.ask(record.id, op)
    } catch (error) {
      // One record that cannot be asked about must not hold up the others.
      events.emit({ kind: 'background_failed', what: 'probe', error })
    }
  }

  return {
    async lapsedLeases() {
      for (let step = 0; step < STEPS_PER_ROUND && !life.stopped; step++) {
        const { rows, next } = await store.queries.lapsed(lowWater, limits.reconcileRows, call)
        lowWater = next
        await Promise.all(rows.map(reconcile))
        if (rows.length < limits.reconcileRows) return
      }
    },
    async unknownOutcomes() {
      let now: number | null = null
      const until = runtime.monotonicMs() + limits.probeRoundMs
      for (let step = 0; step < STEPS_PER_ROUND; step++) {
        const page: Page<LedgerRecord> = await store.queries.unknowns({ limit: limits.reconcileRows, cursor }, call)
        // One at a time: a provider that is asked about many unknowns must not be flooded.
        for (const record of page.rows) {
          if (life.stopped || runtime.monotonicMs() >= until) return
          now ??= await store.clock.now(call)
          await lookAt(record, now)
        }
        cursor = page.cursor
        if (cursor === null) return
      }
    },
  }
}
