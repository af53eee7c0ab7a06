/** `onceonly/http`: the protocol without a framework. Adapters for the usual ones are entries of their own. */

export { addressKey } from './front/addresses.ts'
export type { ByteBudget, ByteBudgetOptions, Hold } from './front/bytes.ts'
export { createByteBudget } from './front/bytes.ts'
export { connectionsMost, limitConnections } from './front/connections.ts'
export { frontLimits } from './front/limits.ts'
export type { Pace, PacedBody, PaceWatch } from './front/pace.ts'
export { createPaceWatch } from './front/pace.ts'
export type { Pieces } from './front/pieces.ts'
export { createPieces } from './front/pieces.ts'
export { mayPipeline } from './front/pipelining.ts'
export { retryAfterMs } from './front/retry.ts'
export type { Shares, SharesOptions } from './front/shares.ts'
export { createShares } from './front/shares.ts'
export type { Batch, BatchError, BulkItem } from './protocol/batch.ts'
export { readBatch } from './protocol/batch.ts'
export type {
  BatchIdentity,
  Bulk,
  BulkDefinition,
  ItemResult,
  LeasedBulk,
  TransactionalBulk,
} from './protocol/bulk.ts'
export { createBulk } from './protocol/bulk.ts'
export type { ItemWords } from './protocol/bulk-words.ts'
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
export type { Answer, Captured, HeaderList, Incoming, IncomingBody, MissingBody } from './protocol/exchange.ts'
export { bodyCut, bodyTooLarge, jsonAnswer, REPLAYED_HEADER, UnreadableBody } from './protocol/exchange.ts'
export type { Finality } from './protocol/finality.ts'
export { webhookIdHeaders } from './protocol/key.ts'
export type { OpenApiDocument } from './protocol/openapi.ts'
export { openapi, problemReference } from './protocol/openapi.ts'
export type { ProblemRow, Situation } from './protocol/problem.ts'
export { errorMember, shouldRetryHeaders, situations } from './protocol/problem.ts'
export { problemPage } from './protocol/problem-page.ts'
export type { Profile, ProfileName } from './protocol/profiles.ts'
export type { BegunRequest, HttpOptions, Route } from './protocol/protect.ts'
export { createRoute } from './protocol/protect.ts'
export type { KeepAnswer, StoredAnswer } from './protocol/record.ts'
export type { Defined, KeySource, RouteDefinition, RouteGuard, RouteNotes, Who } from './protocol/route.ts'
export type { LeasedRouteContext, RouteContext, Running, TransactionRouteContext } from './protocol/running.ts'
export type { OperationStatus, StatusOptions } from './protocol/status.ts'
export { createStatus } from './protocol/status.ts'
