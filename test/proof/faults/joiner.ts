import type { Runtime } from 'onceonly'
import { createLedger, limits, SECOND } from 'onceonly'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import type { Address, CrashStore } from '../../support/place.ts'
import { openStore, who } from '../../support/place.ts'
import { listen, machineMs, readTask, report } from '../crash/member.ts'

/** A process that waits for attempts of another one, and reports when it polled and when it had the outcome. */
export interface JoinerTask {
  readonly address: Address
  readonly keys: readonly string[]
  /** It gets no wakes, and has to poll. */
  readonly deaf: boolean
}

export interface Looked {
  readonly kind: 'looked'
  readonly at: number
}

export interface Knew {
  readonly kind: 'knew'
  readonly key: string
  readonly how: string
  readonly at: number
}

export const joinable = { name: 'join', effect: 'external', whileRunning: { waitMs: 60 * SECOND } } as const

/** The same store, which reports every poll, and drops wakes if `deaf`. */
function observed(store: CrashStore, deaf: boolean): CrashStore {
  return {
    ...store,
    claims: {
      ...store.claims,
      async read(ids, call) {
        const found = await store.claims.read(ids, call)
        report<Looked>({ kind: 'looked', at: machineMs() })
        return found
      },
      watch: (wake) => store.claims.watch(deaf ? () => {} : wake),
    },
  }
}

/** After an order it no longer polls: timers of polls do not fire, those of deadlines do. */
function blind(orders: ReturnType<typeof listen>): Runtime {
  const real = createRuntime()
  let isBlind = false
  void orders.next().then(() => {
    isBlind = true
  })
  return {
    ...real,
    setTimer(ms, fire, background) {
      const isLook = ms <= limits.joinPollCapMs
      return real.setTimer(ms, () => (isLook && isBlind ? report({ kind: 'blind' }) : fire()), background)
    },
  }
}

async function main({ address, keys, deaf }: JoinerTask): Promise<void> {
  const orders = listen()
  const { store } = openStore(address)
  const once = createLedger({ store: observed(store, deaf), background: false, runtime: blind(orders) })
  const operation = once.operation(joinable)
  await Promise.all(
    keys.map(async (key) => {
      const answer = await operation.execute(who(key), 1, () => 'ran twice')
      const how = 'value' in answer ? `${answer.kind} ${answer.value}` : answer.error.code
      report<Knew>({ kind: 'knew', key, how, at: machineMs() })
    }),
  )
  process.exit(0)
}

if (import.meta.main) await main(readTask<JoinerTask>())
