import type { FastifyInstance } from 'fastify'
import { sendInvalid } from '../http/problem.ts'
import type { Base } from '../store.ts'
import { callerOf, requireKey } from '../workspaces/authenticate.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import { putProject } from './document.ts'

/** Large projects ask thousands of questions. */
const DOCUMENT_BYTES_MOST = 4 * 1024 * 1024
const PROJECT_CHARS_MOST = 200

/** `PUT /api/projects/{projectId}`: the questions that a project asks of its references. The last one counts. */
export function addProjects(
  server: FastifyInstance,
  { base, workspaces }: { base: Base; workspaces: Workspaces },
): void {
  const onRequest = requireKey(workspaces, 'imports')
  server.put<{ Params: { projectId: string } }>(
    '/api/projects/:projectId',
    { onRequest, bodyLimit: DOCUMENT_BYTES_MOST, config: { declaration: putProject } },
    async (request, reply) => {
      const { projectId } = request.params
      const { body } = request
      const questions = typeof body === 'object' && body !== null && 'questions' in body ? body.questions : undefined
      const wrongId = projectId.trim() === '' || projectId.length > PROJECT_CHARS_MOST || projectId.includes('\0')
      const errors = [
        ...(wrongId ? [{ field: 'projectId', detail: `is not 1 to ${PROJECT_CHARS_MOST} characters` }] : []),
        ...(Array.isArray(questions) ? [] : [{ field: 'questions', detail: 'is not a list' }]),
      ]
      if (!Array.isArray(questions) || errors.length > 0) return sendInvalid(reply, errors)
      await base.sql.query(
        `insert into import_projects (workspace_id, project_id, document) values (?, ?, ?)
         on conflict (workspace_id, project_id) do update set document = excluded.document`,
        [callerOf(request).workspaceId, projectId, JSON.stringify(body)],
      )
      return { projectId, questions: questions.length }
    },
  )
}
