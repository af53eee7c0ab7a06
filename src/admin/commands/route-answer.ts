import { type HeaderList, hasNoBody } from '../../http/protocol/exchange.ts'
import { canBeKept, type StoredAnswer } from '../../http/protocol/record.ts'
import { badArgument } from './refusal.ts'

interface Given {
  /** Undefined where only the status and the headers are known. */
  readonly value: unknown
  readonly status: number | undefined
  readonly headers: readonly string[]
}

/** Statuses of a success: a refusal is resolved as failed. */
export const successStatuses = { least: 200, most: 399 }
const DEFAULT_STATUS = 200

/** The response that retries of a request to a route get: the value as JSON, under a status and headers. */
export function routeAnswer({ value, status = DEFAULT_STATUS, headers }: Given): StoredAnswer {
  const own = headers.map(headerOf)
  if (value === undefined) return { status, headers: own, body: new Uint8Array() }
  if (hasNoBody(status)) throw badArgument('status', `${status} has no body: leave the value out`)
  const type: HeaderList = own.some(([name]) => name === 'content-type') ? [] : [['content-type', 'application/json']]
  return { status, headers: [...type, ...own], body: new TextEncoder().encode(JSON.stringify(value)) }
}

function headerOf(text: string): readonly [string, string] {
  const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e]*)$/.exec(text) ?? []
  if (name === '' || value.trim() === '') {
    throw badArgument('header', `${text} is not a header like 'Location: /charges/1'`)
  }
  const lower = name.toLowerCase()
  if (lower === 'content-length' || !canBeKept(lower)) {
    throw badArgument('header', `${name} belongs to one exchange and cannot be stored`)
  }
  return [lower, value.trim()]
}
