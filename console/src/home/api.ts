/** What the server gives to a page on its own machine. */
export interface Demo {
  readonly apiKey: string
  /** With which notifications of a storage are sent. */
  readonly hookSecret: string
}

/** Null where the server gives nothing away: it has no demo, or the page comes from another machine. */
export async function readDemo(): Promise<Demo | null> {
  const response = await fetch('/chat/demo')
  return response.ok ? ((await response.json()) as Demo) : null
}

/** An answer of the server, as a demonstration shows it. */
export interface Answer {
  readonly status: number
  /** Whether it came from the record of the key. */
  readonly isReplayed: boolean
  readonly location: string | null
  readonly etag: string | null
  readonly body: Readonly<Record<string, unknown>>
}

interface Sent {
  readonly key?: string
  /** A text is sent as it is, everything else as JSON. */
  readonly body?: unknown
  readonly secret?: string
}

export interface Api {
  readonly demo: Demo
  send(method: 'GET' | 'POST' | 'PUT', path: string, sent?: Sent): Promise<Answer>
}

export function createApi(demo: Demo): Api {
  return {
    demo,
    async send(method, path, { key, body, secret } = {}) {
      const isText = typeof body === 'string'
      const response = await fetch(path, {
        method,
        headers: {
          authorization: `Bearer ${secret ?? demo.apiKey}`,
          ...(key === undefined ? {} : { 'idempotency-key': key }),
          ...(body === undefined ? {} : { 'content-type': isText ? 'text/plain' : 'application/json' }),
        },
        ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
      })
      const { status, headers } = response
      return {
        status,
        isReplayed: headers.get('idempotent-replayed') === 'true',
        location: headers.get('location'),
        etag: headers.get('etag'),
        body: (await response.json().catch(() => ({}))) as Answer['body'],
      }
    },
  }
}

/** Short enough to be read aloud, and new each time. */
export function fresh(): string {
  return crypto.getRandomValues(new Uint32Array(1)).toString().padStart(10, '0').slice(0, 8)
}

const waitMs = 200
const waitMsMost = 20_000

/** Asks until the answer is the one; then says what there is. */
export async function settled<T>(ask: () => Promise<T>, isThere: (value: T) => boolean): Promise<T> {
  const begin = performance.now()
  for (;;) {
    const value = await ask()
    if (isThere(value) || performance.now() - begin > waitMsMost) return value
    await new Promise((resolve) => setTimeout(resolve, waitMs))
  }
}
