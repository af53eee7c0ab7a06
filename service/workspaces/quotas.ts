import type { Script, SqlTx } from 'onceonly'
import type { LimitConfig } from '../config-limits.ts'
import type { Problem, QuotaUse } from '../http/problem.ts'
import { ask, runIn } from '../script.ts'
import type { KeptQuota } from './usage.ts'

/** What a workspace has under way, in one process. */
export const busyQuotas = ['connections', 'streams', 'uploads'] as const
export type BusyQuota = (typeof busyQuotas)[number]

export type QuotaName = KeptQuota | BusyQuota

/** What is left to a workspace of what all workspaces share. */
export interface Quotas {
  /**
   * Before something new is written, in its transaction. Transactions that are open at the same moment do not see each
   * other, so that a quota can be exceeded by what the connections of all processes write at once. Far from its limits a
   * workspace is not asked about for a second.
   * @throws QuotaExceeded
   */
  check(tx: Pick<SqlTx, 'query'>, workspaceId: string, wanted: Wanted): Promise<void>
  /** The same as a part of a script. */
  within(workspaceId: string, wanted: Wanted): Script<void>
  /** Why one more has no place now, or null. */
  full(quota: BusyQuota, workspaceId: string): QuotaExceeded | null
  /** How much of it is under way in this process. */
  underWay(quota: BusyQuota, workspaceId: string): number
  /** Takes one place; the answer gives it back. @throws QuotaExceeded */
  enter(quota: BusyQuota, workspaceId: string): Disposable
}

/** How much more of each. */
export type Wanted = Readonly<Partial<Record<KeptQuota, number>>>

/** The refusal of a request that would exceed a quota: nothing was done. */
export class QuotaExceeded extends Error {
  override readonly name = 'QuotaExceeded'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.problem = problem
  }
}

/** A workspace that is full is refused like any other request that cannot be carried out. */
export async function unlessFull<T>(
  work: () => Promise<T>,
): Promise<T | { readonly kind: 'refused'; readonly problem: Problem }> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof QuotaExceeded) return { kind: 'refused', problem: error.problem }
    throw error
  }
}

/** The setting of each limit, and its thing as the end of "1 000 of 1 000". */
export const quotaTable = {
  clients: ['quotaClients', 'names of clients of the chat'],
  connections: ['quotaConnections', 'connections of the chat to this server'],
  imports: ['quotaImports', 'imports'],
  'message-bytes': ['quotaMessageBytes', 'bytes of messages and attachments'],
  messages: ['quotaMessages', 'messages'],
  'project-bytes': ['quotaProjectBytes', 'bytes of projects'],
  rooms: ['quotaRooms', 'rooms of the chat'],
  runs: ['quotaRuns', 'runs'],
  sequences: ['quotaSequences', 'versions of sequences'],
  streams: ['quotaStreams', 'streams of events from this server'],
  'upload-bytes': ['quotaUploadBytes', 'bytes of uploaded files'],
  uploads: ['quotaUploads', 'files that are being uploaded to this server'],
} as const satisfies Record<QuotaName, readonly [setting: keyof LimitConfig, thing: string]>

/** An upload or a page of the chat ends within minutes; a client that retries more often is only refused more often. */
const COME_AGAIN_MS = 10_000

/** So long the use of a workspace is remembered, where there is room for a great many of what is wanted. */
const REMEMBERED_MS = 1_000
/** More than a process writes in that time. */
const FAR = 10_000
/** Workspaces whose use is remembered; all of it is forgotten past it. */
const REMEMBERED_MOST = 10_000

type Used = ReadonlyMap<string, number>

export function createQuotas(config: LimitConfig, nowMs: () => number = () => performance.now()): Quotas {
  const remembered = new Map<string, { readonly used: Used; readonly untilMs: number }>()
  const busy: Record<BusyQuota, Map<string, number>> = {
    connections: new Map(),
    streams: new Map(),
    uploads: new Map(),
  }
  const limitOf = (quota: QuotaName) => config[quotaTable[quota][0]]

  function full(quota: BusyQuota, workspaceId: string): QuotaExceeded | null {
    const used = busy[quota].get(workspaceId) ?? 0
    const limit = limitOf(quota)
    return used < limit ? null : new QuotaExceeded(tooMany({ name: quota, limit, used }))
  }

  const isFar = (used: Used, wanted: Wanted) =>
    Object.entries(wanted).every(
      ([quota, more]) => (used.get(quota) ?? 0) + more * FAR <= limitOf(quota as KeptQuota) / 2,
    )

  function* readUse(workspaceId: string): Script<Used> {
    const text = 'select quota, sum(used) as used from workspace_usage where workspace_id = ? group by quota'
    const rows = yield* ask<{ readonly quota: string; readonly used: unknown }>(text, [workspaceId])
    const used = new Map(rows.map((row) => [row.quota, Number(row.used)]))
    if (remembered.size >= REMEMBERED_MOST) remembered.clear()
    remembered.set(workspaceId, { used, untilMs: nowMs() + REMEMBERED_MS })
    return used
  }

  function* within(workspaceId: string, wanted: Wanted): Script<void> {
    const known = remembered.get(workspaceId)
    if (known !== undefined && known.untilMs > nowMs() && isFar(known.used, wanted)) return
    const used = yield* readUse(workspaceId)
    for (const [name, more] of Object.entries(wanted)) {
      const quota = name as KeptQuota
      const refusal = { name: quota, limit: limitOf(quota), used: used.get(quota) ?? 0 }
      if (refusal.used + more > refusal.limit) throw new QuotaExceeded(exceeded(refusal, more))
    }
  }

  return {
    full,
    underWay: (quota, workspaceId) => busy[quota].get(workspaceId) ?? 0,
    within,
    check: (tx, workspaceId, wanted) => runIn(tx, within(workspaceId, wanted)),
    enter(quota, workspaceId) {
      const places = busy[quota]
      const refusal = full(quota, workspaceId)
      if (refusal !== null) throw refusal
      places.set(workspaceId, (places.get(workspaceId) ?? 0) + 1)
      let left = false
      return {
        [Symbol.dispose]() {
          if (left) return
          left = true
          const now = (places.get(workspaceId) ?? 1) - 1
          if (now === 0) places.delete(workspaceId)
          else places.set(workspaceId, now)
        },
      }
    },
  }
}

interface NamedUse extends QuotaUse {
  readonly name: QuotaName
}

function exceeded(quota: NamedUse, more: number): Problem {
  const { name, limit, used } = quota
  const detail = `The workspace keeps ${used} of ${limit} ${quotaTable[name][1]}, and this needs ${more} more. Nothing was done.`
  return { name: 'quota-exceeded', detail, quota }
}

function tooMany(quota: NamedUse): Problem {
  const { name, limit, used } = quota
  const detail = `The workspace has ${used} of ${limit} ${quotaTable[name][1]}. Nothing was begun.`
  return { name: 'too-many-at-once', detail, quota, retryAfterMs: COME_AGAIN_MS }
}
