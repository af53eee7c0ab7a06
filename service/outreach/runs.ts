import { isOnceError } from 'onceonly'
import type { Replay, RunState, RunView } from 'onceonly/run'
import { leadById } from '../messages/leads.ts'
import { leadOf } from '../messages/message.ts'
import type { ServerParts } from '../parts.ts'
import type { Sweep } from '../workspaces/retention.ts'
import type { ResolveCommand, StartCommand } from './document.ts'
import { type Engines, inside, orNull, outside } from './engines.ts'
import { createResolve } from './resolve.ts'
import { type OutreachInput, RUN_NAME } from './run.ts'
import { scopeOf } from './run-scope.ts'
import type { Lead, Sequence } from './sequence.ts'
import { type EventSource, withSnapshots } from './streams.ts'
import { leadIdOf, runOf, type Summary } from './view.ts'

export type Started =
  | { readonly kind: 'started'; readonly runId: string }
  | { readonly kind: 'unknown_lead' }
  /** The id is that of a run of another sequence or for another lead. */
  | { readonly kind: 'conflict'; readonly detail: string }

export interface RunsPage {
  readonly runs: readonly { readonly runId: string; readonly run: Summary }[]
  readonly cursor: string | null
}

/** The runs of all workspaces, each seen by its own only. What is not there throws `not_found`. */
export interface Runs {
  /** @throws QuotaExceeded */
  start(workspaceId: string, sequence: Sequence, command: StartCommand): Promise<Started>
  get(workspaceId: string, runId: string): Promise<RunView>
  list(workspaceId: string, query: RunsQuery): Promise<RunsPage>
  /** Against the newest version of the run's sequence. */
  replay(workspaceId: string, runId: string, dryRun: boolean): Promise<Replay>
  /** What changes of the run, until it has ended. */
  events(workspaceId: string, runId: string): Promise<EventSource>
  /** Answers the state that the run has ended in. */
  cancel(workspaceId: string, runId: string): Promise<RunState>
  resolve(workspaceId: string, runId: string, key: string, command: ResolveCommand): Promise<RunView>
  /** For operators, who see the runs of all workspaces under the ids that the store has. */
  readonly inside: {
    replay(id: string): Promise<Replay>
    resolve(id: string, key: string, command: ResolveCommand): Promise<RunView>
  }
  readonly sweep: Sweep
}

export interface RunsQuery {
  readonly state: RunState | null
  readonly limit: number
  readonly cursor: string | null
}

interface Parts extends Pick<ServerParts, 'base'> {
  readonly engines: Engines
}

export function createRuns({ base, engines }: Parts): Runs {
  const { engine, counts, messages, replay } = engines
  const { outreach } = engines.definitions
  const resolve = createResolve({ engine, messages })
  const mustBeRun = (workspaceId: string, runId: string) => engines.get(workspaceId, runId, RUN_NAME)

  /** A run of the same id is the same run, if it was meant to be. */
  async function existing(id: string, sequence: Sequence, { leadId, runId }: StartCommand): Promise<Started | null> {
    const found = await orNull(engine.get(id))
    if (found === null) return null
    const input = found.input as OutreachInput
    const same = found.definition === RUN_NAME && input.sequenceId === sequence.id && leadIdOf(input) === leadId
    if (same) return { kind: 'started', runId: outside(id) }
    return { kind: 'conflict', detail: `The run ${runId} is of another sequence, or for another lead.` }
  }

  async function start(workspaceId: string, sequence: Sequence, command: StartCommand): Promise<Started> {
    const { leadId, runId } = command
    const id = inside(workspaceId, runId ?? `${sequence.id}.v${sequence.version}.${leadId}`)
    // The lead may have changed since: what counts is what was asked for, not what was found then.
    const known = await existing(id, sequence, command)
    if (known !== null) return known
    const row = await leadById(base.sql, workspaceId, leadId)
    if (row === null) return { kind: 'unknown_lead' }
    const { _id, workspaceId: _workspace, ...fields } = leadOf(row)
    const lead: Lead = { id: _id, ...fields }
    const { id: sequenceId, name: sequenceName, version, steps } = sequence
    const input = { workspaceId, sequenceId, sequenceName, version, steps, lead }
    await counts.add(workspaceId, id, leadId)
    try {
      await engine.start(outreach, { runId: id, input })
      return { kind: 'started', runId: outside(id) }
    } catch (error) {
      // A twin was faster, and the lead or the sequence changed between the two.
      const twin = isOnceError(error, 'run_conflict') ? await existing(id, sequence, command) : null
      if (twin === null) throw error
      return twin
    }
  }

  return {
    start,
    get: mustBeRun,
    async list(workspaceId, { state, limit, cursor }) {
      const prefix = inside(workspaceId, '')
      const page = await engine.list({
        definition: RUN_NAME,
        scope: scopeOf(workspaceId),
        limit,
        cursor: cursor === null ? null : cursor.replace(' ', ` ${prefix}`),
        ...(state === null ? {} : { state }),
      })
      const runs = page.runs.map((run) => ({ runId: outside(run.runId), run }))
      return { runs, cursor: page.cursor === null ? null : page.cursor.replace(` ${prefix}`, ' ') }
    },
    async events(workspaceId, runId) {
      await mustBeRun(workspaceId, runId)
      const read = async () => runOf(await mustBeRun(workspaceId, runId), runId)
      return withSnapshots(engine.handle(inside(workspaceId, runId)), 'run', read)
    },
    replay: async (workspaceId, runId, dryRun) => {
      await mustBeRun(workspaceId, runId)
      return replay(inside(workspaceId, runId), dryRun)
    },
    async cancel(workspaceId, runId) {
      await mustBeRun(workspaceId, runId)
      const id = inside(workspaceId, runId)
      await engine.cancel(id)
      return (await engine.get(id)).state
    },
    resolve: (workspaceId, runId, key, command) => resolve(inside(workspaceId, runId), key, command),
    inside: { replay: (id) => replay(id, true), resolve },
    sweep: counts.sweep(async (id) => (await orNull(engine.get(id))) !== null),
  }
}
