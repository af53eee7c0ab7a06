/** `onceonly/http`: the protocol without a framework. Adapters for the usual ones are entries of their own. */

export type { Batch, BatchError, BulkItem } from './batch.ts'
export { readBatch } from './batch.ts'
export type {
  BatchIdentity,
  Bulk,
  BulkDefinition,
  ItemResult,
  LeasedBulk,
  TransactionalBulk,
} from './bulk.ts'
export { createBulk } from './bulk.ts'
export type { ItemWords } from './bulk-words.ts'
export type {
  BatchRoute,
  CommandRoute,
  DesignAnswer,
  NaturalNotes,
  NaturalRoute,
  OpenAnswer,
  ServedRoute,
  Topic,
} from './describe.ts'
export { checklist, describe, openAnswers } from './describe.ts'
export type { Answer, Captured, HeaderList, Incoming, IncomingBody, MissingBody } from './exchange.ts'
export { bodyCut, bodyTooLarge, jsonAnswer, REPLAYED_HEADER, UnreadableBody } from './exchange.ts'
export type { Finality } from './finality.ts'
export { webhookIdHeaders } from './key.ts'
export type { OpenApiDocument } from './openapi.ts'
export { openapi, problemReference } from './openapi.ts'
export type { Situation } from './problem.ts'
export { situations } from './problem.ts'
export type { Profile, ProfileName } from './profiles.ts'
export type { Begun, HttpOptions, Route } from './protect.ts'
export { createRoute } from './protect.ts'
export type { KeepAnswer, StoredAnswer } from './record.ts'
export type { Defined, KeySource, RouteDefinition, RouteGuard, RouteNotes, Who } from './route.ts'
export type { Protection, Running } from './running.ts'
export type { OperationStatus, StatusOptions } from './status.ts'
export { createStatus } from './status.ts'
