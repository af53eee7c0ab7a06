import { createHash } from 'node:crypto'

const SCOPE_CHARS = 32

/** What the ids of all runs of a workspace begin with. Any text may be the id of one, so that a digest stands for it. */
export function scopeOf(workspaceId: string): string {
  return createHash('sha256').update(workspaceId).digest('hex').slice(0, SCOPE_CHARS)
}
