import { type HeaderList, hasNoBody } from '../../http/protocol/exchange.ts'
import { canBeKept, type StoredAnswer } from '../../http/protocol/record.ts'
import { Usage } from './usage.ts'

interface Given {
  /** What `--succeeded` said; undefined where it said nothing. */
  readonly value: unknown
  readonly status: string | undefined
  readonly headers: readonly string[]
}

/** Below are no answers, above are refusals: those are for `--failed`. */
const LEAST_STATUS = 200
const MOST_STATUS = 399
const DEFAULT_STATUS = 200

/** What the retries of a request to a route shall be answered with: the value as JSON, under a status and headers. */
export function answerOf({ value, status: given, headers }: Given): StoredAnswer {
  const status = given === undefined ? DEFAULT_STATUS : Number(given)
  if (!Number.isInteger(status) || status < LEAST_STATUS || status > MOST_STATUS) {
    throw new Usage(`--status ${given} is no status of a success, from ${LEAST_STATUS} to ${MOST_STATUS}.`)
  }
  const own = headers.map(headerOf)
  if (value === undefined) return { status, headers: own, body: new Uint8Array() }
  if (hasNoBody(status)) throw new Usage(`--status ${status} has no body: leave the JSON out.`)
  const type: HeaderList = own.some(([name]) => name === 'content-type') ? [] : [['content-type', 'application/json']]
  return { status, headers: [...type, ...own], body: new TextEncoder().encode(JSON.stringify(value)) }
}

function headerOf(text: string): readonly [string, string] {
  const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e]*)$/.exec(text) ?? []
  if (name === '' || value.trim() === '') throw new Usage(`--header ${text} is no header, like 'Location: /charges/1'.`)
  const lower = name.toLowerCase()
  if (lower === 'content-length' || !canBeKept(lower)) {
    throw new Usage(`--header ${name} belongs to one exchange, and cannot be kept.`)
  }
  return [lower, value.trim()]
}
