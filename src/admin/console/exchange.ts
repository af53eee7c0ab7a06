import type { ServerResponse } from 'node:http'
import type { Answer, HeaderList } from '../../http/protocol/exchange.ts'
import { jsonAnswer } from '../../http/protocol/exchange.ts'
import { notKept } from '../../http/protocol/own-headers.ts'

/** The parts of a request that the console uses, for any server. */
export interface ConsoleRequest {
  readonly method: string
  /** Path and query as they came. */
  readonly url: string
  /** As Node has them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Of the connection itself, whatever headers say. */
  readonly remoteAddress: string | undefined
  /** As Node has it: a proxy may be known by it. */
  readonly httpVersion?: string | undefined
  /** Wrong tokens are counted by it: the client's address, where a trusted proxy has named it. */
  readonly clientAddress: string
  readonly isEncrypted: boolean
  /** The JSON of the body; read only after access was granted. */
  body(): Promise<unknown>
}

export type ConsoleAnswer =
  | { readonly kind: 'whole'; readonly answer: Answer }
  /** Stays open for as long as the page is. */
  | { readonly kind: 'stream'; attach(response: ServerResponse): void }

export interface FieldFault {
  readonly field: string
  readonly detail: string
}

export function json(value: unknown, headers: HeaderList = []): ConsoleAnswer {
  return {
    kind: 'whole',
    answer: jsonAnswer(200, 'application/json; charset=utf-8', value ?? null, [...notKept, ...headers]),
  }
}

export function emptied(headers: HeaderList): ConsoleAnswer {
  return { kind: 'whole', answer: { status: 204, headers: [...notKept, ...headers], body: new Uint8Array() } }
}

const problems = {
  invalid: { status: 400, name: 'invalid-input', title: 'Invalid input' },
  unauthorized: { status: 401, name: 'unauthorized', title: 'Unauthorized' },
  forbidden: { status: 403, name: 'forbidden', title: 'Forbidden' },
  absent: { status: 404, name: 'not-found', title: 'Not found' },
  impossible: { status: 409, name: 'not-possible', title: 'Not possible' },
  guessing: { status: 429, name: 'too-many-attempts', title: 'Too many attempts' },
  crowded: { status: 503, name: 'too-many-pages', title: 'Too many pages are open' },
} as const

export type ProblemKind = keyof typeof problems

/** A problem document (RFC 9457), in the words of the server's own. */
export function problem(kind: ProblemKind, detail: string, errors?: readonly FieldFault[]): ConsoleAnswer {
  const { status, name, title } = problems[kind]
  const retryable = status === 429 || status === 503
  const document = {
    type: `/problems/${name}`,
    status,
    title,
    detail,
    retryable,
    ...(errors === undefined ? {} : { errors }),
  }
  return { kind: 'whole', answer: jsonAnswer(status, 'application/problem+json', document, notKept) }
}

export function invalid(errors: readonly FieldFault[]): ConsoleAnswer {
  return problem('invalid', errors.map(({ field, detail }) => `${field} ${detail}`).join('; '), errors)
}

/** The value of a header; undefined where it was sent several times, because none of them can be trusted. */
export function headerOf({ headers }: ConsoleRequest, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}
