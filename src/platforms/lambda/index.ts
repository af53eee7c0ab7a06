export type { ProtectedRoute } from '../../http/protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../../http/protocol/running.ts'
export type {
  HttpEvent,
  HttpEventV1,
  HttpEventV2,
  HttpResult,
  HttpReturn,
  LambdaContext,
  PartialResult,
  SqsBatchResult,
  SqsEvent,
  SqsRecord,
} from './events.ts'
export type { LambdaHttpFunction, LambdaOptions, LambdaProtect } from './http.ts'
export { createProtect, operationStatus } from './http.ts'
export type { LambdaSqsFunction, SqsBatchOptions } from './sqs.ts'
export { handleSqsBatch } from './sqs.ts'
