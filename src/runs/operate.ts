import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import type { SqlStore } from '../ledger/store/port.ts'
import type { SqlTx } from '../ledger/store/sql.ts'
import { ownTransaction } from '../ledger/store/wing-tables.ts'
import { attributesOf } from './attributes.ts'
import type { AttemptFailure, Entry, RunRow } from './entry.ts'
import type { ErasedRun } from './erase.ts'
import { ERASED, erasable, eraseOne } from './erase.ts'
import { RunError } from './errors.ts'
import { allDefinite, remembered, withFailure } from './failures.ts'
import type { ForkOptions } from './forked.ts'
import { forkOne } from './forked.ts'
import type { RunHistory } from './history.ts'
import { historyOf } from './history.ts'
import type { RunPage, RunQuery } from './list.ts'
import { listRuns } from './list.ts'
import { markDue } from './locks.ts'
import { checkId, checkName } from './names.ts'
import type { OutputPage, OutputQuery } from './outputs.ts'
import { readOutputs } from './outputs.ts'
import { endedLongAgo, noSuchRun, notResolvable, storableFailure } from './problems.ts'
import { createPuts } from './puts.ts'
import { recordedText } from './recordable.ts'
import { isKept } from './replay.ts'
import { resumeOne, seeingTwins, twinOf } from './resume.ts'
import { entryColumns, entryOf, runColumns, runOf } from './stored.ts'
import { createTree } from './tree.ts'
import type { RunView } from './view.ts'
import { viewOf } from './view.ts'

/** How an operator, or a probe, settles a step with an unknown outcome. */
export type Resolution =
  | { readonly kind: 'succeeded'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** It did not happen: it is tried again, under the same key. */
  | { readonly kind: 'not_done' }

/** What people and other systems ask of runs. */
export interface RunOperator {
  get(runId: string): Promise<RunView>
  /** Everything that a replay of the run needs, as plain JSON, for `replayFixture`. It holds inputs and results. */
  export(runId: string): Promise<RunHistory>
  list(query: RunQuery): Promise<RunPage>
  /** A page of what the run emitted, in order. */
  events(runId: string, query?: OutputQuery): Promise<OutputPage>
  /** Delivered once, however often it is sent under its id. False when it was there already. */
  signal(runId: string, name: string, payload: unknown, options?: { readonly id?: string }): Promise<boolean>
  /** Ends a run; whatever is under way records nothing any more. False when it had ended before. */
  cancel(runId: string): Promise<boolean>
  /**
   * After a fix: a failed run continues at its failed steps, with new attempts under the same keys, and so do the children
   * that it failed of; a run that was cancelled, or was parked because its workers crashed with it, continues where it
   * stands. A run that has cleaned up after its cancel is refused.
   */
  resume(runId: string): Promise<void>
  /** After a fix elsewhere: steps that wait for their next attempt are tried now, under the same keys. */
  retry(runId: string): Promise<void>
  resolve(runId: string, key: string, resolution: Resolution): Promise<void>
  /**
   * Removes the input, the journal and the result of a run, and ends one that waits. Its id stays taken until its retention
   * ends. One that a worker drives, or with a step that may have happened, is left as it is; `preview` leaves all of them.
   */
  erase(runId: string, options?: { readonly preview?: boolean }): Promise<ErasedRun>
  /**
   * Starts a new run from a step of an old one: the journal before the step is copied, also of a run that still runs. Behind
   * it other code, or another input, may take another way. Its steps have keys of their own. Answers the id of the new run.
   */
  fork(runId: string, options: ForkOptions): Promise<string>
}

export interface RunOperatorParts extends RunOperator {
  row(runId: string): Promise<RunRow>
  /** Makes a run due now. */
  wake(runId: string): Promise<void>
}

/** How the operator notifies the worker of its own process. */
export interface Nearby {
  /** Something is due. */
  wake(): void
  /** A run was taken away. */
  drop(runId: string): void
}

type Query = SqlTx['query']

export function createRunOperator(
  store: Pick<SqlStore, 'sql' | 'transactions'>,
  clock: () => Promise<number>,
  near: Nearby,
): RunOperatorParts {
  const { sql } = store
  const { query, now } = sql
  const tree = createTree(
    sql,
    createPuts(sql, () => {}),
  )
  const stepNames = Object.keys(entryColumns).join(', ')

  const row = (runId: string) => rowBy(query, runId)

  async function rowBy(by: Query, runId: string): Promise<RunRow> {
    const [found] = await by(`select ${runColumns} from onceonly_runs where id = ?`, [runId])
    if (found === undefined) throw noSuchRun(runId)
    return runOf(found)
  }

  async function entriesOf(runId: string): Promise<Entry[]> {
    const text = `select ${stepNames} from onceonly_run_steps where run_id = ? order by position`
    return (await query(text, [runId])).map(entryOf)
  }

  /**
   * Makes a run that waits due now. One that is held gets a mark, another one each time, which its worker will see. False
   * when it has ended.
   */
  async function makeDue(by: Query, runId: string): Promise<boolean> {
    const { text, values } = markDue(sql, [runId])
    return (await by(text, values)).length > 0
  }

  /**
   * Changes that belong together: a crash between them would leave a run that is never woken. The run comes first in each
   * of them, as in every write of a worker, so they come one after the other.
   */
  async function change<T>(work: (by: Query) => Promise<T>): Promise<T> {
    const changed = await ownTransaction(store, (tx) => work((text, values) => tx.query(text, values)))
    near.wake()
    return changed
  }

  async function signal(
    runId: string,
    name: string,
    payload: unknown,
    { id = crypto.randomUUID() }: { readonly id?: string } = {},
  ): Promise<boolean> {
    checkName('signal', name)
    checkId('signal', id)
    const text = recordedText('The signal', payload)
    const sent = await change(async (by): Promise<boolean | string> => {
      // Its number decides which wait gets it.
      const live = await makeDue(by, runId)
      if (!live) {
        if (await isThere(by, runId, id)) return false
        const { state, continuedAs } = await rowBy(by, runId)
        if (continuedAs !== null) return continuedAs
        throw new OnceError('not_found', `The run ${runId} has ended as ${state}.`, { next: 'Start another run.' })
      }
      const added = await by(
        `insert into onceonly_run_signals (run_id, id, name, number, payload)
          select ?, ?, ?, coalesce(max(number), 0) + 1, ? from onceonly_run_signals where run_id = ?
          having count(*) < ? and coalesce(sum(octet_length(payload)), 0) < ?
          on conflict (run_id, id) do nothing returning id`,
        [runId, id, name, sql.secret(text), runId, limits.runSignals, limits.runJournalChars],
      )
      if (added.length > 0) return true
      if (await isThere(by, runId, id)) return false
      const most = `${limits.runSignals} signals or ${limits.runJournalChars} bytes of them`
      throw new RunError('run_too_long', `The run ${runId} has ${most}.`, { details: { runId, signal: name } })
    })
    return typeof sent === 'string' ? await signal(sent, name, payload, { id }) : sent
  }

  return {
    row,
    wake: async (runId) => {
      await makeDue(query, runId)
      near.wake()
    },
    get: async (runId) => {
      const found = await row(runId)
      return viewOf(found, await entriesOf(runId), (await attributesOf(sql, [runId])).get(runId))
    },
    events: (runId, wanted) => readOutputs(sql, runId, wanted),
    export: async (runId) => historyOf(await row(runId), await entriesOf(runId)),
    list: (wanted) => listRuns(sql, wanted),
    signal,
    async cancel(runId) {
      await row(runId)
      const ended = await tree.cancel(runId)
      // One that is cancelled already may be cleaning up here.
      if (ended) near.drop(runId)
      // A crash before this leaves it to the next upkeep of any worker.
      if (ended) for (const id of await tree.passDown()) near.drop(id)
      near.wake()
      return ended
    },
    async resume(runId) {
      const resumed = await seeingTwins(() => sql.script(() => resumeOne(sql, runId)))
      near.wake()
      if (!resumed) throw notResumable(await row(runId), await clock(), await twinOf(sql, runId))
    },
    async fork(runId, options) {
      const [old, entries] = [await row(runId), await entriesOf(runId)]
      if (!isKept(old, await clock())) throw endedLongAgo(runId)
      await sql.script(() => forkOne(sql, old, entries, options))
      near.wake()
      return options.runId
    },
    erase: (runId, { preview = false } = {}) => sql.script(() => (preview ? erasable(runId) : eraseOne(sql, runId))),
    async retry(runId) {
      await change(async (by) => {
        await makeDue(by, runId)
        const hastened = await by(
          `update onceonly_run_steps set due_at = ${now}
            where run_id = ? and state = 'retrying' and due_at > ${now} returning key`,
          [runId],
        )
        if (hastened.length > 0) return
        const { state } = await rowBy(by, runId)
        throw notResolvable(`No step of ${runId}, which is ${state}, waits for its next attempt.`)
      })
    },
    async resolve(runId, key, resolution) {
      const at = await clock()
      await change(async (by) => {
        await rowBy(by, runId)
        await makeDue(by, runId)
        const [step] = await by(`select ${stepNames} from onceonly_run_steps where run_id = ? and key = ?`, [
          runId,
          key,
        ])
        const resolved = changeOf(resolution, at, step === undefined ? [] : entryOf(step).failures)
        // A step that a living worker drives cannot be resolved by an operator; one left by a dead worker can.
        const changed = await by(
          `update onceonly_run_steps set state = ?, result = ?, due_at = ?, failures = ?, at = ${now}
            where run_id = ? and key = ? and state = 'unknown' returning key`,
          [resolved.state, sql.secret(resolved.result), resolved.dueAt, sql.secret(resolved.failures), runId, key],
        )
        if (changed.length > 0) return
        throw notResolvable(`${runId} has no step ${key} whose outcome is unknown.`)
      })
    },
  }
}

async function isThere(by: Query, runId: string, id: string): Promise<boolean> {
  return (await by('select id from onceonly_run_signals where run_id = ? and id = ?', [runId, id])).length > 0
}

/** @param twin the run that has the place of its dedupKey */
function notResumable(
  { id, definition, state, endedAt, queue, timedOut }: RunRow,
  now: number,
  twin: string | null,
): OnceError {
  if (definition === ERASED) return notResolvable(`The run ${id} was erased: nothing is left of it to continue.`)
  if (endedAt !== null && endedAt < now - limits.runKeepMs) return endedLongAgo(id)
  if (twin !== null)
    return notResolvable(`The run ${twin} of ${queue?.dedupKey} waits or runs in the queue ${queue?.name}.`)
  if (endedAt !== null && (state === 'failed' || state === 'cancelled')) {
    const how = timedOut ? 'took too long' : 'was cancelled'
    return notResolvable(`The run ${id} ${how} and has cleaned up after itself: fork it, or start another one.`)
  }
  return notResolvable(`Only a failed, cancelled or parked run can be resumed; ${id} is ${state}.`)
}

function changeOf(resolution: Resolution, now: number, before: readonly AttemptFailure[]) {
  const blank = { result: null as string | null, dueAt: null as number | null, failures: JSON.stringify(before) }
  switch (resolution.kind) {
    case 'succeeded': {
      const result = recordedText('The result', resolution.result, 'give what the run needs of it')
      return { ...blank, state: 'succeeded', result }
    }
    case 'failed': {
      const failure = { ...storableFailure(resolution.error), attempt: 0, at: now, definite: true }
      return { ...blank, state: 'failed', failures: JSON.stringify(remembered(withFailure(before, failure))) }
    }
    case 'not_done':
      return { ...blank, state: 'retrying', dueAt: now, failures: JSON.stringify(allDefinite(before)) }
  }
}
