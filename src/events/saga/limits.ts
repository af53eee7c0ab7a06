import { DAY, limits, MINUTE, SECOND } from '../../ledger/core/limits.ts'

/** What a saga gets when it does not say otherwise. */
export const sagaDefaults = {
  /** How long a finished instance is remembered: longer than brokers hand over a message again by themselves. */
  keepMs: 7 * DAY,
  /** How long an event waits for an instance that has not begun; by then no event will begin it. */
  deferMs: 7 * DAY,
  /** Waits between tries when another process changed the same instance; after the last one the broker waits. */
  conflictDelaysMs: [100, 200, 500],
  /** How long a message stays away when its instance was too busy for all of these tries. */
  laterMs: 1 * SECOND,
  /** What a handler refuses once it refuses again: only conflicts, outages and `postpone` are worth another try. */
  maxFailures: 1,
  /** How many messages of a subscription are under way at once. */
  concurrency: 16,
  /** How often due timeouts are looked for by chance: usually their own time, or a change of the store, leads to them. */
  dueEveryMs: limits.safetyPollMs,
} as const

/** Fixed limits. */
export const sagaLimits = {
  /** The name is part of the names of its inbox and its claims, which have bounds of their own. */
  nameBytes: 64,
  /** The encoded data of one instance: it is read and written with every event. */
  dataBytes: 8 * 1_024 * 1_024,
  /** States entered because of one event: more is a circle. */
  steps: 16,
  /** Messages that one event may emit: a command per file of a large upload, in one transaction. */
  messages: 10_000,
  /** Timeouts that one event may schedule or unschedule. */
  timeouts: 1_000,
  /** Warnings of one event that are kept, and topics of its messages that the history names. */
  warnings: 20,
  topics: 20,
  /** Events that one instance may have deferred; more means that what it waits for does not come. */
  deferred: 1_000,
  /** The history of one instance: older entries make room. */
  historyEntries: 500,
  /** Timeouts and deferred events taken by one round, and how many of them are delivered at once. */
  dueRows: 64,
  dueLanes: 8,
  /** Rounds in a row while there is something due; then it is the next look's turn. */
  dueRounds: 100,
  /** A process renews what it took until it has delivered it; past this time without a renewal another process does. */
  dueLeaseMs: 1 * MINUTE,
  /** Instances removed by one step of the sweep, and steps of one round. */
  sweepRows: 200,
  sweepSteps: 20,
} as const
