import { limits } from '../../ledger/core/limits.ts'
import type { RunOperator } from '../../runs/operate.ts'
import type { RunView } from '../../runs/view.ts'

/** A run of a tree. */
export interface TreeRun {
  /** 0 for the run that was asked for, 1 for its children. */
  readonly depth: number
  readonly runId: string
  readonly definition: string
  readonly state: RunView['state']
  readonly startedAt: number
  readonly endedAt: number | null
  readonly continuedAs: string | null
  readonly failure: string | null
}

export interface RunTree {
  /** Each run before its children, which stand in the order in which they were started. */
  readonly rows: readonly TreeRun[]
  /** It has more runs than are shown. */
  readonly more: boolean
}

/** A run with its children, and theirs: as many as a page has rows. */
export async function treeOf(operator: Pick<RunOperator, 'get' | 'list'>, runId: string): Promise<RunTree> {
  const rows: TreeRun[] = []
  let more = false

  async function add(run: Omit<RunView, 'steps'>, depth: number): Promise<void> {
    rows.push(rowOf(run, depth))
    const { runs, cursor } = await operator.list({ parent: run.runId, limit: limits.pageRows })
    more ||= cursor !== null
    for (const child of runs.toReversed()) {
      if (rows.length === limits.pageRows) more = true
      else await add(child, depth + 1)
    }
  }

  await add(await operator.get(runId), 0)
  return { rows, more }
}

function rowOf(
  { runId, definition, state, startedAt, endedAt, continuedAs, failure }: Omit<RunView, 'steps'>,
  depth: number,
): TreeRun {
  return { depth, runId, definition, state, startedAt, endedAt, continuedAs, failure: failure?.message ?? null }
}
