/** `onceonly/http`: the protocol without a framework. Adapters for the usual ones are entries of their own. */

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
export type { ContentKey } from './protocol/content-options.ts'
export type { Answer, HeaderList, Incoming, IncomingBody } from './protocol/exchange.ts'
export { jsonAnswer, REPLAYED_HEADER, UnreadableBody } from './protocol/exchange.ts'
export { webhookIdHeaders } from './protocol/key.ts'
export { errorMember, shouldRetryHeaders } from './protocol/problem.ts'
export type { Profile, ProfileName } from './protocol/profiles.ts'
export type { BegunRequest, HttpOptions, Route } from './protocol/protect.ts'
export { createRoute } from './protocol/protect.ts'
export type { KeepAnswer } from './protocol/record.ts'
export type { KeySource, RouteDefinition, RouteNotes, Who } from './protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from './protocol/running.ts'
export type { OperationStatus, StatusOptions } from './protocol/status.ts'
export { createStatus } from './protocol/status.ts'
