import type { FastifyInstance } from 'fastify'
import { CONSOLE_API } from 'onceonly/console'
import type { ServerParts } from '../parts.ts'
import { readUse } from '../workspaces/usage-rows.ts'
import { withQuery } from './query.ts'

const WORKSPACES = 50

/** What the page of stored data asks about quotas. The scope has checked who is signed in. */
export function addQuotaPage(scope: FastifyInstance, parts: Pick<ServerParts, 'base' | 'quotas' | 'config'>): void {
  scope.get(
    `${CONSOLE_API}/quotas`,
    { config: { declaration: 'page' } },
    withQuery(['workspace', 'cursor'], ({ workspace, cursor }) =>
      readUse(parts, { limit: WORKSPACES, cursor, workspaceId: workspace }),
    ),
  )
}
