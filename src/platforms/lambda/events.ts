/** Events and results of AWS Lambda, by what is read of them; the types of `@types/aws-lambda` fit. */

/** The second argument of every Lambda function. */
export interface LambdaContext {
  readonly awsRequestId: string
  getRemainingTimeInMillis(): number
}

type Values = Readonly<Record<string, string | undefined>> | null
type Lists = Readonly<Record<string, readonly string[] | undefined>> | null

/** API Gateway, REST API: payload format 1.0. */
export interface HttpEventV1 {
  readonly httpMethod: string
  /** Without the stage. */
  readonly path: string
  readonly headers?: Values
  readonly multiValueHeaders?: Lists
  readonly queryStringParameters?: Values
  readonly multiValueQueryStringParameters?: Lists
  readonly body: string | null
  readonly isBase64Encoded: boolean
  readonly requestContext: { readonly domainName?: string | undefined }
}

/** API Gateway, HTTP API, and function URLs: payload format 2.0. */
export interface HttpEventV2 {
  readonly version: string
  /** With the stage, unless it is `$default`. */
  readonly rawPath: string
  readonly rawQueryString: string
  readonly cookies?: readonly string[] | undefined
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body?: string | undefined
  readonly isBase64Encoded: boolean
  readonly requestContext: {
    readonly domainName?: string
    readonly stage?: string
    readonly http: { readonly method: string }
  }
}

/** A request as API Gateway or a function URL hands it over. */
export type HttpEvent = HttpEventV1 | HttpEventV2

/** A response as API Gateway and function URLs take it, in both formats. */
export interface HttpResult {
  readonly statusCode: number
  readonly headers: Record<string, string>
  /** Format 1.0: every header with all of its values. */
  readonly multiValueHeaders?: Record<string, string[]>
  /** Format 2.0: the values of `Set-Cookie`. */
  readonly cookies?: string[]
  readonly body: string
  readonly isBase64Encoded: boolean
}

/** What a function may return: a result of Lambda, a `Response`, or a value that is sent as JSON with status 200. */
export type HttpReturn = Response | PartialResult | object | string

export interface PartialResult {
  readonly statusCode?: number | undefined
  readonly headers?: Readonly<Record<string, string | number | boolean>> | undefined
  readonly multiValueHeaders?: Readonly<Record<string, readonly (string | number | boolean)[]>> | undefined
  readonly cookies?: readonly string[] | undefined
  readonly body?: string | undefined
  readonly isBase64Encoded?: boolean | undefined
}

/** One message of an SQS batch. */
export interface SqsRecord {
  readonly messageId: string
  readonly body: string
  readonly attributes: {
    readonly ApproximateReceiveCount: string
    readonly MessageGroupId?: string | undefined
  }
  readonly messageAttributes: Readonly<Record<string, { readonly stringValue?: string | undefined }>>
  /** Of the queue: `arn:aws:sqs:REGION:ACCOUNT:NAME`. */
  readonly eventSourceARN: string
}

/** A batch of SQS. */
export interface SqsEvent {
  readonly Records: readonly SqsRecord[]
}

/** The messages that SQS hands over again; it deletes all others of the batch. */
export interface SqsBatchResult {
  batchItemFailures: { itemIdentifier: string }[]
}
