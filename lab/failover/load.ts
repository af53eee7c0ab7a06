import { setTimeout as pause } from 'node:timers/promises'
import type { Ledger, LedgerEvent, Store } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'

/** What a caller may try again with the same key. */
const RETRYABLE = ['store_unavailable', 'store_busy', 'in_progress', 'transaction_aborted', 'transaction_too_long']
/** A caller waits this long before it tries again. */
const RETRY_MS = 100

interface Row {
  readonly value: string
  readonly fence: number
  readonly atMs: number
}

/** What the callers know, however much the store forgets. */
export interface Book {
  /** Answers that callers have, by key. */
  readonly acknowledged: ReadonlyMap<string, Row>
  /** How often the effect of a key ran. */
  readonly effects: ReadonlyMap<string, number>
  /** Keys whose outcome the ledger calls unknown: they wait for an operator. */
  readonly unknown: ReadonlySet<string>
  /** What must never be seen, in words. */
  readonly violations: readonly string[]
  readonly events: ReadonlyMap<LedgerEvent['kind'], number>
}

export interface Load {
  readonly book: Book
  /** The largest fence that a caller has an answer for. */
  newestFence(): number
  /** How long nothing was acknowledged, at the most, since a moment. */
  longestGapMs(sinceMs: number): number
  /** Waits for answers of keys that were first asked for after the call, or gives up. */
  untilAnswered(count: number, boundMs: number): Promise<void>
  stop(): Promise<void>
}

export interface LoadOptions {
  /** Processes are stores of their own, and share nothing but the server. */
  readonly stores: readonly Store[]
  readonly callers: number
  /** Writes a row in the transaction of the effect, where the store has transactions. */
  readonly row?: (tx: unknown, key: string) => Promise<unknown>
  /** A pause of each caller after an answer, so that the load fits the machine. */
  readonly restMs: number
}

/** Every load of a laboratory has keys of its own. */
let loads = 0

const who = (key: string) => ({ tenant: 'lab', caller: 'load', key })

/** Callers that send every key to all processes at once, and try again until they are answered. */
export function startLoad({ stores, callers, row, restMs }: LoadOptions): Load {
  const acknowledged = new Map<string, Row>()
  const effects = new Map<string, number>()
  const unknown = new Set<string>()
  const violations: string[] = []
  const events = new Map<LedgerEvent['kind'], number>()
  const answeredAtMs: number[] = [performance.now()]
  const on = ({ kind }: LedgerEvent) => void events.set(kind, (events.get(kind) ?? 0) + 1)
  const ledgers = stores.map((store) => createLedger({ store, on }))
  const operations = ledgers.map((ledger) => operationsOf(ledger, row !== undefined))
  let [running, newest] = [true, 0]
  const name = ++loads

  /** One process, asked until it answers. Null where the outcome is unknown, or the load is over. */
  async function ask(process: number, key: string): Promise<{ value: string; fence: number } | null> {
    const { external, inside } = operations[process] as Operations
    const isInside = key.startsWith('t')
    let ran: number | null = null
    for (;;) {
      try {
        const value = isInside
          ? await inside?.run(who(key), null, async (context) => {
              ran = context.fence
              await row?.(context.tx, key)
              return `made under ${context.fence}`
            })
          : await external.run(who(key), null, async (context) => {
              ran = context.fence
              effects.set(key, (effects.get(key) ?? 0) + 1)
              return `made under ${context.fence}`
            })
        if (ran !== null && value === `made under ${ran}`) newest = Math.max(newest, ran)
        return { value: String(value), fence: Number(String(value).split(' ').at(-1)) }
      } catch (error) {
        if (isOnceError(error, 'outcome_unknown')) {
          unknown.add(key)
          return null
        }
        if (!isOnceError(error) || !(error.retryable || RETRYABLE.includes(error.code))) {
          violations.push(`${key}: ${String(error)}`)
          return null
        }
        if (!running) return null
        await pause(RETRY_MS)
      }
    }
  }

  async function caller(number: number): Promise<void> {
    for (let n = 0; running; n++) {
      const key = `${row !== undefined && n % 2 === 1 ? 't' : 'e'}${name}:${number}:${n}`
      const answers = await Promise.all(operations.map((_, process) => ask(process, key)))
      const given = answers.filter((answer) => answer !== null)
      const [first] = given
      if (first === undefined) continue
      if (given.some(({ value }) => value !== first.value)) violations.push(`${key}: two answers`)
      answeredAtMs.push(performance.now())
      acknowledged.set(key, { ...first, atMs: performance.now() })
      await pause(restMs)
    }
  }

  const callersRun = Array.from({ length: callers }, (_, number) => caller(number))
  return {
    book: { acknowledged, effects, unknown, violations, events },
    newestFence: () => newest,
    longestGapMs(sinceMs) {
      const times = [sinceMs, ...answeredAtMs.filter((atMs) => atMs > sinceMs)]
      return Math.max(...times.slice(1).map((atMs, at) => atMs - (times[at] ?? atMs)))
    },
    async untilAnswered(count, boundMs) {
      const [before, endMs] = [acknowledged.size, performance.now() + boundMs]
      while (acknowledged.size < before + count) {
        if (performance.now() > endMs) throw new Error(`Only ${acknowledged.size - before} answers in ${boundMs} ms.`)
        await pause(RETRY_MS)
      }
    },
    async stop() {
      running = false
      await Promise.all(callersRun)
      for (const ledger of ledgers) await ledger.stop()
    },
  }
}

type Operations = ReturnType<typeof operationsOf>

function operationsOf(ledger: Ledger<unknown>, hasTransactions: boolean) {
  const fingerprint = () => null
  return {
    external: ledger.operation<null>({ name: 'charge', effect: 'external', fingerprint }),
    inside: hasTransactions ? ledger.operation<null>({ name: 'order', effect: 'transaction', fingerprint }) : null,
  }
}

/** What the store still knows of what callers have an answer for. */
export interface Kept {
  readonly asked: number
  /** Keys that would run again. */
  readonly lost: readonly string[]
  /** Keys whose claim is there without its outcome: they are not run again, and wait for an operator. */
  readonly held: readonly string[]
  /** Keys that are answered with something else. */
  readonly changed: readonly string[]
}

/** Asks a process that knows nothing for every key that was acknowledged. */
export async function whatIsKept(store: Store, { acknowledged }: Book, hasTransactions: boolean): Promise<Kept> {
  const ledger = createLedger({ store, background: false })
  const { external, inside } = operationsOf(ledger, hasTransactions)
  const lost: string[] = []
  const held: string[] = []
  const changed: string[] = []
  const keys = [...acknowledged]
  const asker = async () => {
    for (let next = keys.pop(); next !== undefined; next = keys.pop()) {
      const [key, { value }] = next
      const again = () => {
        lost.push(key)
        return 'made again'
      }
      const operation = key.startsWith('t') && inside !== null ? inside : external
      try {
        const answer = await operation.run(who(key), null, again)
        if (answer !== value && answer !== 'made again') changed.push(key)
      } catch (error) {
        if (!isOnceError(error, 'outcome_unknown') && !isOnceError(error, 'in_progress')) throw error
        held.push(key)
      }
    }
  }
  const asked = keys.length
  await Promise.all(Array.from({ length: 8 }, asker))
  await ledger.stop()
  return { asked, lost, held, changed }
}
