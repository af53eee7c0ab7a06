import { MINUTE, SECOND } from '../../ledger/core/limits.ts'
import { badOption, checkOptions } from '../../ledger/core/option-names.ts'
import { createBusiest, createNames } from './bounded.ts'
import type {
  FiguresShape,
  GuardEventShape,
  InboxEventShape,
  LedgerEventShape,
  LoadShape,
  LossShape,
  RegionShape,
  RelayEventShape,
  RequestShape,
  RunEventShape,
  SagaEventShape,
  StandingShape,
  StreamEventShape,
} from './event-shapes.ts'
import type { Instruments } from './instruments.ts'
import { createInstruments } from './instruments.ts'
import { countLedger } from './ledger.ts'
import type { Meter } from './meter.ts'
import type { Around, Tracer } from './trace.ts'
import { createTracing } from './trace.ts'

export interface TelemetryOptions {
  /** `metrics.getMeter('onceonly')` of `@opentelemetry/api`, or `createPrometheusMeter()`. */
  readonly meter: Meter
  /** `trace.getTracer('onceonly')` of `@opentelemetry/api`; without one there are no spans. @default none */
  readonly tracer?: Tracer
  /** The figures of the gauges: `createStanding`, read when metrics are collected, at most every 5 seconds. @default none */
  readonly standing?: () => Promise<StandingShape>
  /**
   * The same of a second store, where leased operations have one of their own: its records are counted with the others.
   * @default none
   */
  readonly claims?: () => Promise<StandingShape>
  /** Distinct names under the label `operation`; later ones are counted as `other`. @default 200 */
  readonly operations?: number
  /** What stands under the label `operation` for the name of one: a pattern for its many paths, for example. @default the name */
  readonly label?: (operation: string) => string
}

/** Listeners for the events of every room: give each to the `on` of what it listens to. */
export interface Telemetry {
  readonly ledger: (event: LedgerEventShape) => void
  /** Spans and timings; for the `around` of a ledger. */
  readonly around: Around
  /** Events of guards have no name, so it is given here. By the tenant, floods of workspaces are counted apart. */
  guard(name: string, event: GuardEventShape, tenant: string): void
  readonly inbox: (event: InboxEventShape) => void
  readonly relay: (event: RelayEventShape) => void
  readonly saga: (event: SagaEventShape) => void
  readonly run: (event: RunEventShape) => void
  readonly stream: (event: StreamEventShape) => void
  readonly request: (request: RequestShape) => void
  /** For the `on` of a store that notices what it has lost. */
  readonly loss: (loss: LossShape) => void
  /** For `figures` of the console. */
  figures(): FiguresShape
  /** Read when metrics are collected; once for each process. */
  observeLoad(load: () => LoadShape): void
  /** Read when metrics are collected; once for each region of this process. */
  observeRegion(region: RegionShape): void
}

const telemetryOptions = {
  meter: true,
  tracer: true,
  standing: true,
  claims: true,
  operations: true,
  label: true,
} satisfies Record<keyof TelemetryOptions, true>

/** More operations than a large service declares; times a dozen outcomes, Prometheus still does not mind. */
const OPERATIONS = 200
/** As long as an operator takes to look at an alert. */
const BUSIEST_WINDOW_MS = 5 * MINUTE
/** Callers that are counted separately within a window, in memory. */
const BUSIEST_NAMES = 4_096
/** A region pulls many times within it; the alert has the same bound. */
const CUT_MS = 10 * SECOND
/** Two scrapers, or twelve gauges, share one look at the store. */
const STANDING_MS = 5 * SECOND

function checkTelemetry(options: TelemetryOptions): void {
  checkOptions('createTelemetry', options, telemetryOptions)
  if (typeof options.meter?.createCounter === 'function') return
  badOption(
    'Telemetry',
    'meter',
    "must be metrics.getMeter('onceonly') of @opentelemetry/api, or createPrometheusMeter()",
  )
}

/**
 * Metrics and spans from the events of ledgers, guards, inboxes, relays, sagas, runs and streams.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createStanding } from 'onceonly/admin'
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createPrometheusMeter, createTelemetry } from 'onceonly/telemetry'
 *
 * const store = sqliteStore('once.db')
 * const telemetry = createTelemetry({ meter: createPrometheusMeter(), standing: createStanding(store) })
 * const once = createLedger({ store, on: telemetry.ledger, around: telemetry.around })
 * ```
 */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  checkTelemetry(options)
  const { meter, standing, claims = null } = options
  const instruments = createInstruments(meter)
  const { counters, histograms, gauges } = instruments
  const { label = (operation: string) => operation } = options
  const bounded = createNames(options.operations ?? OPERATIONS)
  const nameOf = (operation: string) => bounded(label(operation))
  const busiest = () => createBusiest(BUSIEST_WINDOW_MS, BUSIEST_NAMES, () => performance.now())
  const reuseByOne = busiest()
  const pendingByOne = busiest()
  gauges.reuseByOne.addCallback((result) => result.observe(reuseByOne.most()))
  gauges.pendingByOne.addCallback((result) => result.observe(pendingByOne.most()))
  if (standing !== undefined) observeStanding(gauges, standing, claims, nameOf)
  const tracing = createTracing(options.tracer ?? null, histograms, nameOf)
  const count = countLedger(counters, nameOf)
  const regions: RegionShape[] = []

  return {
    around: tracing.around,
    ledger(event) {
      count(event)
      const { kind, identity } = event
      if (identity === undefined) return
      if (kind === 'key_reused') reuseByOne.count(`${identity.tenant}\n${identity.caller}`)
      if (kind === 'replayed') tracing.replayed(identity)
    },
    guard(name, event, tenant) {
      const operation = nameOf(name)
      switch (event.kind) {
        case 'blocked':
          return counters.guardBlocked.add(1, { operation, outcome: event.mode ?? 'lock_resolved' })
        case 'pending':
          pendingByOne.count(tenant)
          return counters.guardPending.add(1, { operation })
        case 'error':
          return counters.guardErrors.add(1, { operation })
        case 'unattached':
          // A mistake in the program, for the log: the send itself was guarded.
          return undefined
      }
    },
    inbox({ kind, consumer }) {
      const operation = nameOf(consumer)
      if (kind === 'background_failed') counters.background.add(1, { operation: 'inbox' })
      else if (kind !== 'warning' && kind !== 'purged') counters.inbox.add(1, { operation, outcome: kind })
    },
    relay({ kind, count: published = 0, lagMs = 0 }) {
      if (kind === 'published') {
        counters.published.add(published, {})
        histograms.publishLag.record(lagMs / SECOND, {})
      } else if (kind === 'failed' || kind === 'parked' || kind === 'unavailable') {
        counters.publishFailures.add(1, { outcome: kind })
      } else if (kind === 'background_failed') counters.background.add(1, { operation: 'relay' })
    },
    saga({ kind, saga, why, state }) {
      const operation = nameOf(saga)
      if (kind === 'background_failed') return counters.background.add(1, { operation: 'saga' })
      if (kind === 'swept' || kind === 'window_too_short' || kind === 'background_recovered') return
      // It is the end of an event that was counted as handled.
      if (kind === 'instance_failed') return counters.sagaFailures.add(1, { operation, outcome: state ?? 'none' })
      counters.sagaEvents.add(1, { operation, outcome: kind })
      if (kind === 'ignored') counters.sagaIgnores.add(1, { operation, outcome: why ?? 'declared' })
    },
    run({ kind, definition, state }) {
      const operation = nameOf(definition ?? 'run')
      if (kind === 'started') counters.runsStarted.add(1, { operation })
      else if (kind === 'step') counters.steps.add(1, { operation, outcome: state ?? 'none' })
      else if (kind === 'left') counters.runsLeft.add(1, { operation, outcome: state ?? 'lost' })
      else if (kind === 'lost' || kind === 'parked') counters.runsLeft.add(1, { operation, outcome: kind })
      else if (kind === 'background_failed') counters.background.add(1, { operation: 'run' })
    },
    stream({ kind, region }) {
      const counter = kind === 'resumed' ? counters.streamResumes : counters.streamResets
      counter.add(1, { operation: nameOf(region) })
    },
    request({ operation, outcome, durationMs }) {
      const named = operation === null ? 'none' : nameOf(operation)
      counters.requests.add(1, { operation: named, outcome: outcome ?? 'none' })
      histograms.request.record(durationMs / SECOND, { operation: named })
    },
    loss({ store, what, count: lost }) {
      counters.losses.add(lost, { operation: nameOf(store), outcome: what })
    },
    figures() {
      const silent = regions.flatMap((region) => region.silences()).filter(({ ms }) => ms > CUT_MS)
      return { keyReuseByOne: reuseByOne.most(), pendingByOne: pendingByOne.most(), linksCut: silent.length }
    },
    observeLoad(load) {
      for (const part of ['underWay', 'most', 'waiting', 'bodyBytes'] as const) {
        gauges[part].addCallback((result) => {
          const value = load()[part]
          if (value !== undefined) result.observe(value)
        })
      }
    },
    observeRegion(region) {
      regions.push(region)
      gauges.regionSilence.addCallback((result) => {
        for (const { peer, ms } of region.silences()) {
          result.observe(ms / SECOND, { operation: nameOf(`${region.region} from ${peer}`) })
        }
      })
    },
  }
}

/** While the store does not answer only `onceonly_store_up` is reported: other gauges would show old figures. */
function observeStanding(
  gauges: Instruments['gauges'],
  ask: () => Promise<StandingShape>,
  askClaims: (() => Promise<StandingShape>) | null,
  nameOf: (name: string) => string,
): void {
  const look = lookSeldom(ask)
  const lookAtClaims = askClaims === null ? null : lookSeldom(askClaims)
  const observe = (gauge: keyof Instruments['gauges'], value: (standing: StandingShape) => number | undefined) =>
    gauges[gauge].addCallback(async (result) => {
      const standing = await look()
      const seen = standing === null ? undefined : value(standing)
      if (seen !== undefined) result.observe(seen)
    })
  /** Over both stores; half of a number would look like all of it. */
  const observeRecords = (gauge: keyof Instruments['gauges'], value: (standing: StandingShape) => number | undefined) =>
    gauges[gauge].addCallback(async (result) => {
      const [first, second] = await Promise.all([look(), lookAtClaims === null ? {} : lookAtClaims()])
      if (first === null || second === null) return
      const counted = [value(first), value(second)].filter((each) => each !== undefined)
      if (counted.length > 0) result.observe(counted.reduce((sum, each) => sum + each, 0))
    })
  gauges.storeUp.addCallback(async (result) => result.observe((await look()) === null ? 0 : 1))
  if (lookAtClaims !== null) {
    gauges.claimsUp.addCallback(async (result) => result.observe((await lookAtClaims()) === null ? 0 : 1))
  }
  observeRecords('staleLeases', ({ staleLeases }) => staleLeases)
  observeRecords('unknownWaiting', ({ unknownWaiting }) => unknownWaiting)
  observe('outboxLag', ({ outbox }) => (outbox === undefined ? undefined : outbox.lagMs / SECOND))
  observe('outboxPending', ({ outbox }) => outbox?.pending)
  observe('outboxParked', ({ outbox }) => outbox?.parkedKeys)
  observe('outboxDead', ({ outbox }) => outbox?.deadLetters)
  observe('runsStuck', ({ runsStuck }) => runsStuck)
  observe('runsUnknown', ({ runsUnknown }) => runsUnknown)
  gauges.inboxDead.addCallback(async (result) => {
    const letters = (await look())?.inboxDeadLetters ?? {}
    for (const [consumer, count] of Object.entries(letters)) result.observe(count, { operation: nameOf(consumer) })
  })
  observeQueues(gauges, look, nameOf)
}

function observeQueues(
  gauges: Instruments['gauges'],
  look: () => Promise<StandingShape | null>,
  nameOf: (name: string) => string,
): void {
  const queues = async () => Object.entries((await look())?.queues ?? {})
  gauges.queueDepth.addCallback(async (result) => {
    for (const [name, queue] of await queues())
      for (const outcome of ['waiting', 'blocked', 'delayed'] as const)
        result.observe(queue[outcome], { operation: nameOf(name), outcome })
  })
  gauges.queueRunning.addCallback(async (result) => {
    for (const [name, { running }] of await queues()) result.observe(running, { operation: nameOf(name) })
  })
  gauges.queueOldest.addCallback(async (result) => {
    for (const [name, { oldestMs }] of await queues()) result.observe(oldestMs / SECOND, { operation: nameOf(name) })
  })
  gauges.scheduleLate.addCallback(async (result) => {
    for (const [name, { lateMs }] of Object.entries((await look())?.schedules ?? {}))
      result.observe(lateMs / SECOND, { operation: nameOf(name) })
  })
}

/** Null while it fails. */
function lookSeldom(ask: () => Promise<StandingShape>): () => Promise<StandingShape | null> {
  let last: Promise<StandingShape | null> = Promise.resolve(null)
  let askedAt = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - askedAt < STANDING_MS) return last
    askedAt = now
    last = ask().catch(() => null)
    return last
  }
}
