/** What one of the last requests was about. */
export interface AskedRequest {
  /** The record of its command. */
  readonly record: string
  readonly operation: string
  readonly at: number
}

/** Which records the last requests of this process were about, by the ids that clients and log lines have. */
export interface RequestRecords {
  add(requestId: string, request: AskedRequest): void
  get(requestId: string): AskedRequest | null
}

/** About two megabytes; the log knows those before. */
const REQUESTS_MOST = 10_000

export function createRequestRecords(most = REQUESTS_MOST): RequestRecords {
  const requests = new Map<string, AskedRequest>()
  return {
    add(requestId, request) {
      requests.set(requestId, request)
      if (requests.size <= most) return
      const [oldest] = requests.keys()
      if (oldest !== undefined) requests.delete(oldest)
    },
    get: (requestId) => requests.get(requestId) ?? null,
  }
}
