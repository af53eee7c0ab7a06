/** One request, as any client sends it. */
export interface AskOptions {
  readonly method?: string
  readonly path?: string
  readonly key?: string | null
  readonly body?: string | null
  readonly headers?: Readonly<Record<string, string>>
}

export interface GatewayAnswer {
  readonly status: number
  readonly body: string
  readonly replayed: boolean
  readonly headers: Headers
  /** The last part of a problem's type. */
  readonly problem: string | null
}

export async function ask(port: number, options: AskOptions = {}): Promise<GatewayAnswer> {
  const { method = 'POST', path = '/things', key = 'key-1', body = '{"amount":1}', headers = {} } = options
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    ...(body === null || method === 'GET' ? {} : { body }),
    redirect: 'manual',
    headers: {
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      ...(key === null ? {} : { 'idempotency-key': key }),
      ...headers,
    },
  })
  const text = await response.text()
  return {
    status: response.status,
    body: text,
    replayed: response.headers.get('idempotent-replayed') === 'true',
    headers: response.headers,
    problem: /"type":"[^"]*\/([a-z-]+)"/.exec(text)?.[1] ?? null,
  }
}
