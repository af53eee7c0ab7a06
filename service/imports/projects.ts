import type { FastifyInstance } from 'fastify'
import type { SqlTx } from 'onceonly'
import type { InputTypes } from '../http/input.ts'
import { inTransaction } from '../messages/transaction.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import type { Base } from '../store.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import { putProject } from './document.ts'

/** Large projects ask thousands of questions. */
const DOCUMENT_BYTES_MOST = 4 * 1024 * 1024

/** `PUT /api/projects/{projectId}`: the questions that a project asks of its references. The last one counts. */
export function addProjects(server: FastifyInstance, { base, quotas }: Pick<ServerParts, 'base' | 'quotas'>): void {
  server
    .withTypeProvider<InputTypes>()
    .put(
      '/api/projects/:projectId',
      { bodyLimit: DOCUMENT_BYTES_MOST, ...routeOptions(putProject) },
      async (request) => {
        const { projectId } = request.params
        const { body } = request
        const project = { workspaceId: callerOf(request).workspaceId, projectId, document: JSON.stringify(body) }
        await inTransaction(base, (tx) => saveProject(tx, { sql: base.sql, quotas }, project))
        return { projectId, questions: body.questions.length }
      },
    )
}

interface Project {
  readonly workspaceId: string
  readonly projectId: string
  readonly document: string
}

async function saveProject(
  tx: Pick<SqlTx, 'query'>,
  { sql, quotas }: { readonly sql: Base['sql']; readonly quotas: Quotas },
  { workspaceId, projectId, document }: Project,
): Promise<void> {
  const [before] = await tx.query<{ bytes: unknown }>(
    'select octet_length(document) as bytes from import_projects where workspace_id = ? and project_id = ?',
    [workspaceId, projectId],
  )
  const more = Buffer.byteLength(document) - Number(before?.bytes ?? 0)
  // One that does not grow is never refused, so that the same request can be sent again.
  if (more > 0) await quotas.check(tx, workspaceId, { 'project-bytes': more })
  await tx.query(
    `insert into import_projects (workspace_id, project_id, document) values (?, ?, ?)
     on conflict (workspace_id, project_id) do update set document = excluded.document`,
    [workspaceId, projectId, sql.secret(document)],
  )
}
