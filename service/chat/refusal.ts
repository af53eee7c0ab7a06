import { QuotaExceeded } from '../workspaces/quotas.ts'

/** Null, or why a client may not come in: the reason of a close frame, which has room for 123 bytes. */
export async function unlessFull(work: () => Promise<unknown>): Promise<string | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (!(error instanceof QuotaExceeded) || error.problem.quota === undefined) throw error
    const { name, used, limit } = error.problem.quota
    return `quota-exceeded: the workspace keeps ${used} of ${limit} ${name}`
  }
}
