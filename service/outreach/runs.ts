import { AsyncLocalStorage } from 'node:async_hooks'
import { isOnceError } from 'onceonly'
import { createEngine, httpChannel, providers, type Replay, type RunState, type RunView } from 'onceonly/run'
import type { Channels } from '../messages/channels/index.ts'
import type { Delivery } from '../messages/deliver.ts'
import { leadById } from '../messages/leads.ts'
import { leadOf } from '../messages/message.ts'
import type { Sender } from '../messages/send.ts'
import type { ServerParts } from '../parts.ts'
import type { Sweep } from '../workspaces/retention.ts'
import type { ResolveCommand, StartCommand } from './document.ts'
import { createPublicFetch } from './public-fetch.ts'
import { createResolve } from './resolve.ts'
import { defineOutreach, type OutreachInput, RUN_NAME } from './run.ts'
import { createRunCounts } from './run-counts.ts'
import { scopeOf } from './run-scope.ts'
import { createMessageChannel } from './send.ts'
import type { Lead, Sequence } from './sequence.ts'
import { newestSequence } from './sequences.ts'
import type { Step } from './step.ts'
import type { Summary } from './view.ts'

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
  /** Answers the state that the run has ended in. */
  cancel(workspaceId: string, runId: string): Promise<RunState>
  resolve(workspaceId: string, runId: string, key: string, command: ResolveCommand): Promise<RunView>
  /** For operators, who see the runs of all workspaces under the ids that the store has. */
  readonly inside: {
    replay(id: string): Promise<Replay>
    resolve(id: string, key: string, command: ResolveCommand): Promise<RunView>
  }
  readonly sweep: Sweep
  stop(): Promise<void>
}

export interface RunsQuery {
  readonly state: RunState | null
  readonly limit: number
  readonly cursor: string | null
}

interface Parts extends Pick<ServerParts, 'base' | 'once' | 'quotas' | 'watch'> {
  readonly sender: Sender
  readonly delivery: Delivery
  readonly channels: Channels
  readonly sendTimeoutMs: number
  /** Hosts that webhooks may reach although they are not public. */
  readonly webhookHosts: readonly string[]
}

/** Beyond what a provider may take: the guard waits for a twin, and the store for its turn. */
const STEP_EXTRA_MS = 30_000

export async function createRuns(parts: Parts): Promise<Runs> {
  const { base, once, sender, delivery, channels, sendTimeoutMs, webhookHosts, quotas, watch } = parts
  const counts = createRunCounts(base, quotas)
  const messages = createMessageChannel({ base, sender, delivery, channels })
  const fetch = createPublicFetch(webhookHosts)
  const webhook = httpChannel({ name: 'webhook', provider: providers.http, fetch })
  const by = { messages, webhook, stepTimeoutMs: sendTimeoutMs + STEP_EXTRA_MS }
  const outreach = defineOutreach(by, ({ steps }) => steps)
  const engine = await createEngine({
    ledger: once,
    runs: [outreach],
    on: watch.run,
  })
  // An engine of its own drives nothing: it only reads what the other one did, with the steps of today.
  const today = new AsyncLocalStorage<readonly Step[]>()
  const replayed = defineOutreach(by, ({ steps }) => today.getStore() ?? steps)
  const replayer = await createEngine({ ledger: once, runs: [replayed], work: false })
  const resolve = createResolve({ engine, messages })

  /** A run of the same id is the same run, if it was meant to be. */
  async function existing(id: string, sequence: Sequence, { leadId, runId }: StartCommand): Promise<Started | null> {
    const found = await orNull(engine.get(id))
    if (found === null) return null
    const { sequenceId, lead } = found.input as OutreachInput
    const same = sequenceId === sequence.id && lead.id === leadId
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
    await counts.add(workspaceId, id)
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

  async function replay(id: string, dryRun: boolean): Promise<Replay> {
    const { workspaceId, sequenceId, steps } = (await engine.get(id)).input as OutreachInput
    const newest = await newestSequence(base, workspaceId, sequenceId)
    return today.run(newest?.steps ?? steps, () => replayer.replay(id, { dryRun }))
  }

  return {
    start,
    get: (workspaceId, runId) => engine.get(inside(workspaceId, runId)),
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
    replay: (workspaceId, runId, dryRun) => replay(inside(workspaceId, runId), dryRun),
    async cancel(workspaceId, runId) {
      const id = inside(workspaceId, runId)
      await engine.cancel(id)
      return (await engine.get(id)).state
    },
    resolve: (workspaceId, runId, key, command) => resolve(inside(workspaceId, runId), key, command),
    inside: { replay: (id) => replay(id, true), resolve },
    sweep: counts.sweep(async (id) => (await orNull(engine.get(id))) !== null),
    async stop() {
      await replayer.stop()
      await engine.stop()
    },
  }
}

/** Workspaces may choose the same ids. */
function inside(workspaceId: string, runId: string): string {
  return `${scopeOf(workspaceId)}/${runId}`
}

function outside(id: string): string {
  return id.slice(id.indexOf('/') + 1)
}

async function orNull<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if (isOnceError(error, 'not_found')) return null
    throw error
  }
}
