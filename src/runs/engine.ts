import { decodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { defaults, limits } from '../ledger/core/limits.ts'
import { checkOptions } from '../ledger/core/option-names.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { sqlStoreOf } from '../ledger/sql-store.ts'
import { checkSameOrm } from '../ledger/store/foreign.ts'
import type { SqlStore } from '../ledger/store/port.ts'
import { createListeners } from '../runtime/listeners.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { createAdmission } from './admission.ts'
import type { RunDefinition } from './definition.ts'
import type { RunEnd } from './ends.ts'
import { createEnds } from './ends.ts'
import type { RunRow } from './entry.ts'
import { RunError } from './errors.ts'
import type { RunEvent } from './events.ts'
import { createFollowers } from './followers.ts'
import { createHolding } from './holding.ts'
import type { RunPage, RunQuery } from './list.ts'
import { checkId } from './names.ts'
import { inputOf, newRun, nextId } from './new-run.ts'
import { createRunOperator, type RunOperator } from './operate.ts'
import type { OutputPage, OutputQuery, RunOutput } from './outputs.ts'
import { endedLongAgo, stillRunning } from './problems.ts'
import type { EnqueueOptions, Queue } from './queue.ts'
import { checkEnqueue, queueOf, queuesOf } from './queue.ts'
import type { QueueOperator } from './queue-operator.ts'
import { createQueueOperator } from './queue-operator.ts'
import { createEnqueuing, queuedRun } from './queued.ts'
import type { Replay, ReplayOptions } from './replay.ts'
import { isKept, isKnownBy, replayRun } from './replay.ts'
import type { Schedule } from './schedule.ts'
import type { ScheduleOperator } from './schedule-operator.ts'
import { createScheduleOperator } from './schedule-operator.ts'
import { createScheduler } from './scheduler.ts'
import { readFailure } from './stored.ts'
import { RUN_ROOM, RUN_TOPIC, runMigrations } from './tables.ts'
import { createTree } from './tree.ts'
import type { RunView } from './view.ts'
import { createWorker } from './worker.ts'
import { createWrites } from './writes.ts'

export interface EngineOptions {
  /** On the SQL store that keeps the journals. Stopping it stops the engine. */
  readonly ledger: Ledger<unknown>
  /** Every definition that this process can drive. */
  // oxlint-disable-next-line typescript/no-explicit-any -- definitions of different inputs stand in one list.
  readonly runs: readonly RunDefinition<any, any>[]
  /** Schedules whose runs this process starts at their times; their definitions stand in `runs`. @default none */
  readonly schedules?: readonly Schedule[]
  /** Queues into which this process enqueues runs, and out of which it takes them. @default none */
  readonly queues?: readonly Queue[]
  /** Runs that this process drives at once. @default 100 */
  readonly concurrency?: number
  /** How long the others wait before they take over from a process that says nothing. @default 30_000 */
  readonly leaseMs?: number
  /** Runs are taken when they are due; a process looks for them at least this often all the same. @default 30_000 */
  readonly pollMs?: number
  /**
   * For tests of your definitions: a run is left after its steps and comes again from its journal, so that a body that is
   * not deterministic fails with `run_diverged`.
   * @default false
   */
  readonly checkDeterminism?: boolean
  /** False for a process that starts runs and looks at them, but drives none. @default true */
  readonly work?: boolean
  /** Called with every event of runs and steps. @default none */
  readonly on?: (event: RunEvent) => void
  /** Time, randomness and scheduling; a simulator gives its own. @default the system's */
  readonly runtime?: Runtime
}

const engineOptions = {
  ledger: true,
  runs: true,
  schedules: true,
  queues: true,
  concurrency: true,
  leaseMs: true,
  pollMs: true,
  checkDeterminism: true,
  work: true,
  on: true,
  runtime: true,
} satisfies Record<keyof EngineOptions, true>

export interface StartOptions<I> {
  /** The identity of the run: starting it again returns the same run. */
  readonly runId: string
  /** What the body gets; plain data. Another input under the same id is refused. */
  readonly input: I
  /**
   * What a finished run of this id means: its result, a refusal, or a new run that names the old one.
   * @default 'return'
   */
  readonly ifFinished?: 'return' | 'reject' | 'restart'
}

export interface RunHandle<O> {
  readonly runId: string
  /** Waits for the end. Rejects with `run_failed`, `run_timed_out`, `run_cancelled`, or after the time with `in_progress`. */
  result(options?: { readonly waitMs?: number }): Promise<O>
  view(): Promise<RunView>
  /**
   * What the run emitted, from the first event on or behind the one whose `cursor` is given, and then what it emits, until it
   * has ended; so do the runs that continue it.
   */
  events(options?: {
    readonly after?: number
    readonly signal?: AbortSignal
  }): AsyncGenerator<RunOutput, void, undefined>
  /** One page of these events. While there is none it waits, for up to `waitMs`. */
  eventPage(options?: EventPageOptions): Promise<OutputPage>
}

export interface EventPageOptions extends OutputQuery {
  /** How long to wait for an event, in milliseconds. @default 0 */
  readonly waitMs?: number
  /** Ends the wait. @default none */
  readonly signal?: AbortSignal
}

/** Durable runs on the store of a ledger. Any number of processes share the work; none of them is special. */
export interface Engine extends RunOperator {
  start<I, O>(definition: RunDefinition<I, O>, options: StartOptions<I>): Promise<RunHandle<O>>
  /**
   * Lets a run begin when its queue has a place for it, in this process or another one. The same `runId` again returns the same
   * run, and so does the same `dedupKey` while its run waits or runs.
   */
  enqueue<I, O>(definition: RunDefinition<I, O>, options: EnqueueOptions<I>): Promise<RunHandle<O>>
  handle<O = unknown>(runId: string): RunHandle<O>
  /** Replays the run with today's code: dry by default. Refuses to continue a run that diverges. */
  replay(runId: string, options?: ReplayOptions): Promise<Replay>
  get(runId: string): Promise<RunView>
  list(query: RunQuery): Promise<RunPage>
  /** The schedules in the store: listed, paused, resumed, triggered. */
  readonly schedules: ScheduleOperator
  /** The queues in the store: listed, paused, resumed. */
  readonly queues: QueueOperator
  /** Hands its runs over to others and ends. The ledger stays open: it is yours. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Drives durable runs: their steps are recorded, and another process continues where this one ended.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createEngine, defineRun } from 'onceonly/run'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const welcome = defineRun('welcome', async (run, input: { email: string }) => {
 *   await run.sleep('a day', 86_400_000)
 *   return run.step('mail', ({ effectKey }) => `mail to ${input.email} under ${effectKey}`)
 * })
 * const once = createLedger({ store: sqliteStore('runs.db') })
 * const engine = await createEngine({ ledger: once, runs: [welcome] })
 * const started = await engine.start(welcome, { runId: 'u-42', input: { email: 'ann@example.com' } })
 * console.log(await started.result())
 * ```
 */
export async function createEngine(options: EngineOptions): Promise<Engine> {
  checkOptions('createEngine', options, engineOptions)
  const { ledger, runs, runtime = createRuntime(), work = true, on } = options
  const store = sqlStoreOf('createEngine', ledger)
  const { sql } = store
  if (!Array.isArray(runs)) {
    throw new OnceError('bad_option', 'createEngine needs `runs`: a list of what defineRun returned.')
  }
  const definitions = new Map(runs.map((run) => [run.name, run]))
  for (const { name, transactions } of runs) checkSameOrm(`the run ${name}`, ledger.orm, transactions ?? null)
  if (definitions.size < runs.length) throw new OnceError('bad_option', 'Two runs have the same name.')
  const queues = queuesOf(options.queues ?? [])
  const schedules = schedulesOf(options.schedules ?? [], definitions, queues)
  await sql.migrate(RUN_ROOM, runMigrations)

  const time = createTime(store, runtime)
  await time.clock()
  const writes = createWrites(runtime, sql, time.learn)
  const holding = createHolding(store, { definitions: definitions.values(), learn: time.learn })
  const ends = createEnds(runtime)
  const listeners = createListeners(on)
  const emit = (event: RunEvent) => {
    if (event.kind === 'lost' || event.kind === 'emitted') ends.announce(event.runId, null)
    listeners.emit(event)
  }
  const admission = createAdmission(runtime, store, queues, definitions.values())
  const enqueuing = createEnqueuing(runtime, sql, time.learn)
  const worker = createWorker({
    around: {
      store,
      transactions: ledger.orm ?? store.transactions,
      wantsOrm: (name) => definitions.get(name)?.transactions !== undefined,
      runtime,
      writes,
      tree: createTree(sql, writes),
      mustKnow: checkRegistered,
      queueOf: (wanted) => queueOf(queues, wanted),
      clock: time.clock,
      nearNow: time.nearNow,
      signals: holding.signals,
      emit,
      checkDeterminism: options.checkDeterminism ?? false,
      followers: createFollowers(),
    },
    holding,
    definitions,
    scheduler: createScheduler(store, schedules, queues),
    admission,
    concurrency: options.concurrency ?? limits.runConcurrency,
    leaseMs: options.leaseMs ?? defaults.leaseMs,
    pollMs: options.pollMs ?? limits.safetyPollMs,
    emit,
    left: ({ runId: id, state, result, failure, ended, next }) =>
      ends.announce(id, ended && next === null ? { id, state, result, failure: readFailure(failure) } : null),
    dropped: (runId) => ends.announce(runId, null),
  })
  if (work) await worker.begin()
  else await admission.register()
  const wake = () => {
    if (work) void worker.look()
  }
  const watch = work ? sql.listen(RUN_TOPIC, (cause) => (cause === 'topic' ? wake() : worker.ring())) : null
  const operator = createRunOperator(store, time.clock, { wake, drop: worker.drop })

  async function start<I, O>(
    definition: RunDefinition<I, O>,
    given: StartOptions<I>,
    restarts: string | null = null,
  ): Promise<RunHandle<O>> {
    checkId('run', given.runId)
    checkRegistered(definition)
    using place = work ? worker.reserve() : null
    const fresh = newRun(definition, given, {
      worker: place === null ? null : worker.id,
      now: time.nearNow(),
      restarts,
    })
    const { created, row } = await writes.start(fresh)
    if (!created) return await found(definition, given, row)
    emit({ kind: 'started', runId: row.id, definition: definition.name })
    if (place !== null) worker.drive(row)
    return handle(row.id)
  }

  function checkRegistered({ name, body }: { readonly name: string; readonly body: unknown }): void {
    if ((definitions.get(name)?.body as unknown) === body) return
    throw new OnceError('bad_option', `The run ${name} is not registered: pass it to createEngine.`)
  }

  async function enqueue<I, O>(definition: RunDefinition<I, O>, given: EnqueueOptions<I>): Promise<RunHandle<O>> {
    checkRegistered(definition)
    const { runId = runtime.newId() } = given
    const run = queuedRun(definition, { ...given, runId }, checkEnqueue(queues, { ...given, runId }), time.nearNow())
    const { created, row } = await enqueuing.enqueue(run)
    if (row.id === run.id) checkSame(definition, run, row)
    if (created) emit({ kind: 'queued', runId: row.id, definition: definition.name, queue: run.queue.name })
    wake()
    return handle(row.id)
  }

  function checkSame(
    definition: Pick<RunDefinition<never>, 'name'>,
    given: Pick<RunRow, 'inputFingerprint'>,
    row: RunRow,
  ) {
    if (row.definition === definition.name && row.inputFingerprint === given.inputFingerprint) return
    throw new RunError('run_conflict', `The run ${row.id} was started with another definition or input.`, {
      details: { runId: row.id, definition: row.definition },
    })
  }

  async function found<I, O>(
    definition: RunDefinition<I, O>,
    given: StartOptions<I>,
    row: RunRow,
  ): Promise<RunHandle<O>> {
    checkSame(definition, inputOf(given), row)
    const { ifFinished = 'return' } = given
    if (row.endedAt === null || ifFinished === 'return') return handle(row.id)
    if (ifFinished === 'reject') {
      throw new RunError('run_conflict', `The run ${row.id} has ended as ${row.state}.`, {
        details: { runId: row.id },
      })
    }
    return start(definition, { ...given, runId: nextId(row) }, row.id)
  }

  function handle<O>(runId: string): RunHandle<O> {
    return {
      runId,
      view: () => operator.get(runId),
      eventPage: (given) => eventPage(runId, given),
      async *events({ after = 0, signal } = {}) {
        for (let cursor = after; signal?.aborted !== true; ) {
          const page = await eventPage(runId, {
            after: cursor,
            waitMs: limits.runEventPulseMs,
            ...(signal && { signal }),
          })
          yield* page.events
          if (page.ended) return
          cursor = page.cursor
        }
      },
      async result({ waitMs = limits.waitMaxMs } = {}) {
        const deadline = runtime.monotonicMs() + waitMs
        for (let last = runId; ; ) {
          using listener = ends.listen(last)
          const leftMs = deadline - runtime.monotonicMs()
          // A run that this process drives announces its end by itself.
          const row = worker.drives(last) && leftMs > 0 ? null : await operator.row(last)
          if (row !== null && row.continuedAs !== null) {
            last = row.continuedAs
            continue
          }
          if (row !== null && row.endedAt !== null) return resultOf(row) as O
          if (leftMs <= 0) throw stillRunning(last, row?.state)
          const end = await listener.within(Math.min(leftMs, limits.runPollMs))
          if (end !== null) return resultOf(end) as O
        }
      },
    }
  }

  async function eventPage(runId: string, given: EventPageOptions = {}): Promise<OutputPage> {
    const { waitMs = 0, signal, ...wanted } = given
    const deadline = runtime.monotonicMs() + waitMs
    for (let emitting = runId; ; ) {
      // From here on no event of this process is missed; those of others are looked for.
      using listener = ends.listen(emitting)
      const page = await operator.events(runId, wanted)
      const isAnother = page.runId !== emitting
      emitting = page.runId
      const leftMs = deadline - runtime.monotonicMs()
      if (page.events.length > 0 || page.ended || leftMs <= 0 || signal?.aborted === true) return page
      if (isAnother) continue
      await listener.within(Math.min(leftMs, limits.runPollMs))
    }
  }

  async function replay(runId: string, given: ReplayOptions = {}): Promise<Replay> {
    const row = await operator.row(runId)
    const definition = definitions.get(row.definition)
    if (!isKnownBy(definition, row)) {
      const what = `${row.definition}, version ${row.version}`
      throw new OnceError(
        'bad_option',
        `The run ${runId} is a ${what}, which is not registered: pass it to createEngine.`,
      )
    }
    if (!isKept(row, await time.clock())) {
      throw endedLongAgo(runId)
    }
    const { entries } = await holding.journal(runId)
    const dry = await replayRun(row, entries, definition, given)
    if (given.dryRun !== false) return dry
    if (dry.verdict === 'diverged') {
      const changed = dry.steps.filter(({ status }) => status !== 'same' && status !== 'pending')
      throw new RunError('run_diverged', `The run ${runId} diverges from its record.`, { details: { steps: changed } })
    }
    // Recorded steps are answered from the record; open ones continue under their keys; unknown ones are not sent.
    if (row.endedAt === null) await operator.wake(runId)
    const settled = await settledView(runId)
    const before = new Set(entries.filter(({ state }) => state === 'succeeded').map(({ key }) => key))
    const performed = settled.steps.filter(
      ({ key, kind, state }) => (kind === 'step' || kind === 'channel') && state === 'succeeded' && !before.has(key),
    ).length
    return { ...dry, performed }
  }

  /** The run at its end, or where it can only wait. */
  async function settledView(runId: string): Promise<RunView> {
    const deadline = runtime.monotonicMs() + limits.runReplayMs
    for (;;) {
      using listener = ends.listen(runId)
      const view = await operator.get(runId)
      if (view.state !== 'running' || runtime.monotonicMs() > deadline) return view
      await listener.within(limits.runPollMs)
    }
  }

  async function end(): Promise<void> {
    if (work) await worker.stop()
    await store.rest?.()
  }

  let stopping: Promise<void> | null = null
  const stop = () => {
    forget()
    watch?.stop()
    return (stopping ??= end())
  }
  const forget = ledger.defer(stop)
  return {
    async start(definition, given) {
      checkOptions('`start`', given, { runId: true, input: true, ifFinished: true })
      return start(definition, given)
    },
    enqueue,
    handle,
    replay,
    ...operator,
    schedules: createScheduleOperator(sql, { wake }),
    queues: createQueueOperator(sql, { wake }),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function schedulesOf(
  given: readonly Schedule[],
  definitions: ReadonlyMap<string, RunDefinition>,
  queues: ReadonlyMap<string, Queue>,
): ReadonlyMap<string, Schedule> {
  if (!Array.isArray(given)) {
    throw new OnceError('bad_option', 'createEngine needs `schedules` as a list of what schedule returned.')
  }
  for (const { name, run, queue } of given) {
    if (queue !== null) queueOf(queues, queue)
    if (definitions.get(run.name)?.body === run.body) continue
    throw new OnceError(
      'bad_option',
      `The schedule ${name} starts ${run.name}, which is not registered: add it to \`runs\`.`,
    )
  }
  const schedules = new Map(given.map((each) => [each.name, each]))
  if (schedules.size < given.length) throw new OnceError('bad_option', 'Two schedules have the same name.')
  return schedules
}

function resultOf(row: RunEnd): unknown {
  switch (row.state) {
    case 'succeeded':
      return decodeValue(row.result ?? '')
    case 'cancelled':
      throw new RunError('run_cancelled', `The run ${row.id} was cancelled.`)
    default: {
      const details = { runId: row.id, failure: row.failure }
      if (row.failure?.code === 'run_timed_out') {
        throw new RunError('run_timed_out', `The run ${row.id} took longer than its \`timeoutMs\`.`, { details })
      }
      const text = `The run ${row.id} failed: ${row.failure?.message ?? 'no reason was recorded'}`
      throw new RunError('run_failed', text, { details })
    }
  }
}

/**
 * The store's time: read where it decides something, estimated where it is only noted. Every write returns it, so that the
 * estimate is never older than the last write.
 */
function createTime(store: SqlStore, runtime: Runtime) {
  let known = { now: 0, atMs: 0 }
  /** It was so a moment ago: an estimate that is late is a safe bound for the first send of a step. */
  const learn = (now: number) => {
    known = { now, atMs: runtime.monotonicMs() }
  }
  return {
    learn,
    async clock() {
      const now = await store.clock.now({ timeoutMs: limits.storeCallMs })
      learn(now)
      return now
    },
    // Rounded down: a sleep until a time must not end before it.
    nearNow: () => Math.floor(known.now + (runtime.monotonicMs() - known.atMs)),
  }
}
