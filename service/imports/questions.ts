import type { SqlTx } from 'onceonly'

type Query = Pick<SqlTx, 'query'>

/** Null without a document. It is read whole, in the transaction of the caller: large ones take their time. */
export async function questionsOf({ query }: Query, workspaceId: string, projectId: string): Promise<number | null> {
  const text = 'select document from import_projects where workspace_id = ? and project_id = ?'
  const [row] = await query<{ document: string }>(text, [workspaceId, projectId])
  if (row === undefined) return null
  const { questions } = JSON.parse(row.document) as { questions: readonly unknown[] }
  return questions.length
}
