import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Request } from '../../../src/ledger/core/request.ts'
import type { Session } from '../../../src/ledger/store/port.ts'
import type { Awaitable } from '../../../src/runtime/runtime.ts'
import type { CrashStore } from '../../support/place.ts'
import { report } from './member.ts'

/**
 * The named moments of one command's life. `…_sent` is a moment while the store works on it, some microseconds after
 * the request left; `…_known` is after the store acknowledged it and before the ledger heard.
 */
export const points = [
  'claim_unsent',
  'claim_sent',
  'claim_known',
  'start_known',
  'effect_before',
  'effect_after',
  'settle_unsent',
  'settle_sent',
  'settle_known',
  'commit_sent',
  'commit_known',
] as const

export type Point = (typeof points)[number]

export interface Death {
  readonly chosen: Point
  /** Ends this process if this is the point. Called by the effect itself, too. */
  at(point: Point): void
  /** Ends this process some microseconds later, whatever it does then. */
  soonAfter(point: Point): void
}

export async function createDeath(chosen: Point, delayUs: number): Promise<Death> {
  const cells = new Int32Array(new SharedArrayBuffer(8))
  cells[1] = delayUs
  const announce = () => report({ kind: 'dying', point: chosen })
  if (chosen.endsWith('_sent')) {
    const thread = new Worker(new URL(import.meta.resolve('./killer.ts')), { workerData: cells.buffer })
    await once(thread, 'online')
    thread.unref()
  }
  // A COMMIT that travels with the settle is sent before the work returns.
  let sent = false
  return {
    chosen,
    at(point) {
      if (point !== chosen) return
      announce()
      process.kill(process.pid, 'SIGKILL')
    },
    soonAfter(point) {
      if (point !== chosen || sent) return
      sent = true
      announce()
      Atomics.store(cells, 0, 1)
      Atomics.notify(cells, 0)
    },
  }
}

type Named = 'claim' | 'settle'
const isNamed = (kind: Request['kind']): kind is Named => kind === 'claim' || kind === 'settle'

/** The same store, in a process that dies at the chosen point. */
export function mortal(store: CrashStore, death: Death): CrashStore {
  const around = async <T>(kind: Request['kind'], work: () => Awaitable<T>): Promise<T> => {
    if (isNamed(kind)) death.at(`${kind}_unsent`)
    const working = work()
    if (isNamed(kind)) death.soonAfter(`${kind}_sent`)
    const result = await working
    if (isNamed(kind) || kind === 'start') death.at(`${kind}_known`)
    return result
  }
  /** Between a settle and a COMMIT that are sent together there is no moment: for that one they are sent apart. */
  const settledLast = <Tx>({ settleLast }: Session<Tx>): Pick<Session<Tx>, 'settleLast'> => {
    if (settleLast === undefined || death.chosen === 'settle_known') return { settleLast: undefined }
    return {
      settleLast: async (request) => {
        death.at('settle_unsent')
        const working = settleLast(request)
        death.soonAfter('settle_sent')
        death.soonAfter('commit_sent')
        return await working
      },
    }
  }
  return {
    ...store,
    claims: {
      ...store.claims,
      apply: (request, call) => around(request.kind, () => store.claims.apply(request, call)),
    },
    transactions: {
      async run(work, call) {
        const result = await store.transactions.run(async (session) => {
          const worked = await work({
            ...session,
            apply: (request) => around(request.kind, () => session.apply(request)),
            ...settledLast(session),
          })
          // The next thing that the store does is to commit.
          death.soonAfter('commit_sent')
          return worked
        }, call)
        death.at('commit_known')
        return result
      },
    },
  }
}

/** One command at a time, so one request at a time. */
