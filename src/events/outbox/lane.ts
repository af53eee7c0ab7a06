import { limits } from '../../ledger/core/limits.ts'
import { backoffMs } from '../../ledger/core/retry.ts'
import type { Bell } from '../../runtime/bell.ts'
import type { Tenure } from './leases.ts'
import type { RelayParts } from './parts.ts'
import type { Published } from './port.ts'
import type { OutboxRow, Refusal } from './rows.ts'
import { BEHIND } from './rows.ts'

/** One batch at a time: read, publish, wait for the confirmations, mark. Several lanes of a relay overlap. */
export interface Lane {
  readonly bell: Bell
  /** Settles when nothing is under way that was read before now. */
  turnOver(): Promise<void>
  /** Ends after the batch that is under way. */
  stop(): Promise<void>
}

/** The result of a batch. */
interface Sorted {
  readonly confirmed: readonly OutboxRow[]
  readonly refused: readonly { readonly row: OutboxRow; readonly reason: string }[]
  /** Why the broker could not say, for the first line of which it could not. */
  readonly away: string | null
}

/**
 * In the order of the batch; a line ends at the first of its rows that was not confirmed, whatever was said of the
 * later ones: they come again, behind it.
 */
export function sortAnswers(rows: readonly OutboxRow[], answers: readonly Published[]): Sorted {
  const stuck = new Set<string>()
  const confirmed: OutboxRow[] = []
  const refused: { row: OutboxRow; reason: string }[] = []
  let away: string | null = null
  for (const [index, row] of rows.entries()) {
    if (stuck.has(row.line)) continue
    const answer = answers[index] ?? { kind: 'unavailable', reason: 'The publisher did not answer for it.' }
    if (answer.kind === 'confirmed') {
      confirmed.push(row)
      continue
    }
    stuck.add(row.line)
    if (answer.kind === 'refused') refused.push({ row, reason: answer.reason })
    else away ??= answer.reason
  }
  return { confirmed, refused, away }
}

export function startLane(parts: RelayParts, mine: (partition: number) => boolean, bell: Bell): Lane {
  const { leases, rows, runtime, settings, emit } = parts
  let stopped = false
  let turn: Promise<unknown> = Promise.resolve()
  /** Partitions that had all that was asked of them at the last look, and may have more. */
  let full: ReadonlySet<number> = new Set()
  let looks = 0
  let listening = true
  /** Since when we are notified again; null when no transaction can be left that saw us busy. */
  let dozingFromMs: number | null = null
  let awayTries = 0
  /** Calls of the publisher under way, those that were given up included. */
  let unanswered = 0

  /** A publisher should answer within the deadline and never reject; one that does not must not hold up the relay. */
  async function publish(batch: readonly OutboxRow[]): Promise<readonly Published[]> {
    const { publisher, publishMs } = settings
    const unavailable = (reason: string) => batch.map((): Published => ({ kind: 'unavailable', reason }))
    if (unanswered >= limits.relayUnanswered) {
      return unavailable(`${unanswered} earlier calls of the publisher ${publisher.name} are still unanswered.`)
    }
    const late = Promise.withResolvers<readonly Published[]>()
    const silent = `The publisher ${publisher.name} did not answer within ${publishMs} ms.`
    const timer = runtime.setTimer(publishMs, () => late.resolve(unavailable(silent)), true)
    unanswered++
    const call = async () =>
      publisher.publish(
        batch.map(({ message }) => message),
        { timeoutMs: publishMs },
      )
    const answer = call()
      .catch((error: unknown) => unavailable(error instanceof Error ? error.message : String(error)))
      .finally(() => unanswered--)
    return await Promise.race([answer, late.promise]).finally(() => timer.cancel())
  }

  async function settle(tenures: readonly Tenure[], batch: readonly OutboxRow[], now: number): Promise<string | null> {
    const { confirmed, refused, away } = sortAnswers(batch, await publish(batch))
    const marked = await rows.mark(tenures, confirmed)
    const oldest = Math.min(...confirmed.map(({ addedAt }) => addedAt))
    if (marked > 0) emit({ kind: 'published', count: marked, lagMs: Math.max(0, now - oldest) })
    // A count belongs to the message at the head of its line, not to the one that follows it.
    const advanced = new Set(confirmed.map(({ line }) => line))
    const refusals = refused.map(({ row, reason }) => refusalOf(row, reason, advanced.has(row.line)))
    const counted = await rows.fail(tenures, refusals)
    for (const refusal of counted) reportRefusal(refusal)
    // Looking again without knowing what is lost would publish the same rows again and again.
    if (marked < confirmed.length || counted.length < refusals.length) await leases.check()
    // A broker that takes some is there: it is asked again soon.
    if (confirmed.length > 0) awayTries = 0
    return away
  }

  function refusalOf(row: OutboxRow, message: string, isNewHead: boolean): Refusal {
    const attempts = (isNewHead ? 0 : (row.attempts ?? 0)) + 1
    const reason = message.toWellFormed().replaceAll('\0', ' ').slice(0, limits.failureMessageChars)
    const retryAfterMs =
      attempts < settings.maxAttempts ? backoffMs(attempts, settings.backoff, runtime.random()) : null
    return { row, reason, attempts, retryAfterMs }
  }

  function reportRefusal({ row, reason, attempts, retryAfterMs }: Refusal): void {
    const { id, topic, key } = row.message
    if (retryAfterMs === null) emit({ kind: 'parked', id, topic, key, attempts, reason })
    else emit({ kind: 'failed', id, topic, key, attempts, reason, retryAfterMs })
  }

  /** A few of each; more of those that have more, the fewer they are. A hot key stands in one partition alone. */
  function shareOf(partition: number): number {
    if (!full.has(partition)) return limits.relayShareRows
    return Math.max(limits.relayShareRows, Math.ceil(limits.relayBatchRows / full.size))
  }

  /** Answers how long to wait for the next look: 0 when there is more to do. */
  async function look(): Promise<number> {
    // 1. Only what is ours for long enough to be published and marked.
    const tenures = leases.current(settings.publishMs).filter(({ partition }) => mine(partition))
    const wanted = tenures.map(({ partition }) => ({ partition, rows: shareOf(partition) }))
    const { now, rows: found, full: again, isEmpty } = await rows.next(wanted)
    full = again
    if (found.length === 0) return await sleepy(isEmpty)
    // 2. What stands behind a parked message of its key joins it.
    const held = found.filter(({ attempts }) => attempts === null)
    for (const { message } of await rows.hold(tenures, held)) {
      const { id, topic, key } = message
      emit({ kind: 'parked', id, topic, key, attempts: 0, reason: BEHIND })
    }
    // 3. The others are published, and marked when the broker has confirmed them.
    const batch = found.filter(({ attempts }) => attempts !== null)
    const away = batch.length === 0 ? null : await settle(tenures, batch, now)
    await awake()
    if (away === null) {
      awayTries = 0
      return 0
    }
    awayTries += 1
    const retryAfterMs = backoffMs(awayTries, settings.away, runtime.random())
    emit({ kind: 'unavailable', reason: away, retryAfterMs })
    await bell.quiet(retryAfterMs)
    return 0
  }

  /** Under load the relay needs no notifications: it polls again anyway. */
  async function awake(): Promise<void> {
    looks = Math.max(0, looks) + 1
    if (!listening || looks < limits.relayBusyLooks || !settings.notified) return
    await leases.listen(all(), false)
    listening = false
  }

  /** Nothing to publish. Turns notifications on again, then polls once more. */
  async function sleepy(isEmpty: boolean): Promise<number> {
    looks = Math.min(0, looks) - 1
    if (!listening) {
      await leases.listen(all(), true)
      listening = true
      dozingFromMs = runtime.monotonicMs()
      return 0
    }
    const capMs = isEmpty ? limits.safetyPollMs : limits.relayPollCapMs
    const pollMs = Math.min(capMs, limits.relayPollBaseMs * 2 ** Math.min(-looks, 10))
    if (dozingFromMs === null) return pollMs
    // A transaction that added before and commits only now sends no notification: the relay polls for it, less often
    // the
    // longer it takes.
    const dozeMs = Math.max(limits.relayDozeBaseMs, (runtime.monotonicMs() - dozingFromMs) / limits.relayDozeParts)
    if (dozeMs < limits.relayPollCapMs) return dozeMs
    dozingFromMs = null
    return limits.relayPollCapMs
  }

  /** Also what is ours for a moment only: its lease may be renewed, and then it is asleep with the others. */
  const all = () => leases.current(0).filter(({ partition }) => mine(partition))

  async function work(): Promise<void> {
    while (!stopped) {
      let waitMs: number
      try {
        const looking = look()
        turn = looking.catch(() => undefined)
        waitMs = await looking
      } catch (error) {
        emit({ kind: 'background_failed', what: 'relay', error })
        waitMs = limits.relayPollBaseMs
      }
      if (!stopped && waitMs > 0) await bell.rung(waitMs)
    }
  }

  const life = work()
  return {
    bell,
    turnOver: async () => void (await turn),
    async stop() {
      stopped = true
      bell.end()
      await life
    },
  }
}
