/** `onceonly/openapi`: documents of protected routes: OpenAPI, pages of problems, and the design checklist. */

export type {
  BatchRoute,
  ChecklistTopic,
  CommandRoute,
  DesignAnswer,
  NaturalNotes,
  NaturalRoute,
  OpenAnswer,
  ServedRoute,
} from './protocol/describe.ts'
export { checklist, describe, openAnswers } from './protocol/describe.ts'
export type { OpenApiDocument } from './protocol/openapi.ts'
export { openapi, problemReference } from './protocol/openapi.ts'
export type { ProblemRow, Situation } from './protocol/problem.ts'
export { situations } from './protocol/problem.ts'
export { problemPage } from './protocol/problem-page.ts'
