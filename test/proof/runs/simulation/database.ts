import { DatabaseSync } from 'node:sqlite'
import type { SqlStore } from 'onceonly'
import { OnceError } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { runIn } from '../../../../src/ledger/store/script.ts'
import { sqlite } from '../../../../src/ledger/stores/sqlite/dialect.ts'
import type { SimulatedProcess, Simulation } from '../../../support/simulation.ts'

type Query = SqlStore['sql']['query']
type SqlValue = string | number | bigint | null

const SCRIPT_CALL = { timeoutMs: 10_000, lockMs: 10_000, refuseTwinOf: null }

/** The statements of the room on a database in memory, in virtual time: asked by processes over lines that lose things. */
export interface SimulatedDatabase {
  /** The store's time. */
  now(): number
  /** The store's clock is set forward. */
  jump(ms: number): void
  connect(process: SimulatedProcess, line: Line): SqlStore
  /** Called after every commit. */
  watch(check: () => void): void
  /** For the checks: what is recorded, without a network in between. */
  look(text: string): readonly unknown[]
  stop(): void
}

export interface Line {
  /** One way. */
  latencyMs(): number
  fate(): 'fine' | 'request_lost' | 'answer_lost'
}

const away = () => new OnceError('store_unavailable', 'The connection was cut.', { applied: 'maybe' })

export function createSimulatedDatabase(simulation: Simulation, startMs: number): SimulatedDatabase {
  const database = new DatabaseSync(':memory:')
  const statements = new Map<string, ReturnType<DatabaseSync['prepare']>>()
  const listeners = new Set<() => void>()
  const checks: (() => void)[] = []
  let offsetMs = startMs
  let tail: Promise<unknown> = Promise.resolve()
  let migrated = false
  /** A statement of this transaction wakes the listeners. */
  let woken = false
  const now = () => Math.floor(offsetMs + simulation.now())
  database.function('simulated_now', now)
  database.function('simulated_wake', () => {
    woken = true
    return 1
  })

  /** One after the other, as with one writer. */
  function exclusive<T>(work: () => Promise<T>): Promise<T> {
    const turn = tail.then(work)
    tail = turn.catch(() => undefined)
    return turn
  }

  function execute(text: string, values: readonly unknown[] = []): readonly unknown[] {
    const statement = statements.get(text) ?? database.prepare(text)
    statements.set(text, statement)
    return statement.all(...(values as readonly SqlValue[]))
  }

  function committed(): void {
    if (woken) for (const wake of listeners) wake()
    woken = false
    for (const check of checks) check()
  }

  function connect(process: SimulatedProcess, line: Line): SqlStore {
    const { runtime } = process

    /** A crashed process gets no answer, a paused one gets it later; the request arrives all the same. */
    function call<T>(serve: () => Promise<T>): Promise<T> {
      return new Promise((resolve, reject) => {
        simulation.timer(line.latencyMs(), () => {
          const fate = line.fate()
          const served = fate === 'request_lost' ? Promise.reject<T>(away()) : serve()
          const answer = (settle: () => void) => void runtime.setTimer(line.latencyMs(), settle, false)
          served.then(
            (value) => answer(() => (fate === 'fine' ? resolve(value) : reject(away()))),
            (error: unknown) => answer(() => reject(error)),
          )
        })
      })
    }

    const query = ((text: string, values?: readonly unknown[]) =>
      call(() =>
        exclusive(async () => {
          const rows = execute(text, values)
          committed()
          return rows
        }),
      )) as Query

    /** A transaction of a process that is gone is rolled back after a while, and nothing more is done in it. */
    const run: SqlStore['transactions']['run'] = (work, { timeoutMs }) =>
      exclusive(async () => {
        let open = true
        const inside = (text: string, values?: readonly unknown[]) =>
          call(async () => {
            if (!open) throw away()
            return execute(text, values)
          })
        execute('BEGIN')
        const gone = Promise.withResolvers<never>()
        const timer = simulation.timer(timeoutMs, () => gone.reject(away()))
        const commit = () =>
          call(async () => {
            if (open) execute('COMMIT')
            else throw away()
            open = false
            committed()
          })
        const working = async () => {
          const value = await work({ tx: { query: inside as Query } } as never)
          await commit()
          return value
        }
        try {
          return await Promise.race([working(), gone.promise])
        } finally {
          if (open) execute('ROLLBACK')
          open = false
          timer.cancel()
        }
      })

    return {
      ...memoryStore(),
      sql: {
        dialect: sqlite,
        secret: (text) => text,
        lookup: (text) => text,
        now: 'simulated_now()',
        query,
        script: (begin) => run(({ tx }) => runIn(tx, begin()), SCRIPT_CALL),
        wake: () => 'simulated_wake()',
        pendingSql: async () => [],
        async migrate(_room, migrations) {
          if (!migrated) for (const { up } of migrations) for (const text of up(sqlite)) database.exec(text)
          migrated = true
        },
        listen(_topic, wake) {
          const listener = () => {
            if (process.crashed) listeners.delete(listener)
            else runtime.setTimer(line.latencyMs(), () => wake('topic'), true)
          }
          listeners.add(listener)
          return { ready: Promise.resolve(), stop: () => void listeners.delete(listener) }
        },
      },
      transactions: { run },
      clock: { now: () => call(async () => now()), advance: async () => {} },
    } as SqlStore
  }

  return {
    now,
    jump: (ms) => {
      offsetMs += ms
    },
    connect,
    watch: (check) => void checks.push(check),
    look: (text) => execute(text),
    stop: () => database.close(),
  }
}
