const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/
/** A page that makes its own name mean 127.0.0.1 still sends that name as the host. */
const LOCAL_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i
/** Of a proxy on this machine, whose clients may be anywhere. */
const PASSED_ON = new Set([
  'cdn-loop',
  'cf-connecting-ip',
  'client-ip',
  'fastly-client-ip',
  'forwarded',
  'true-client-ip',
  'via',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'x-original-host',
  'x-original-url',
  'x-real-ip',
  'x-real-port',
])
const PASSED_ON_PREFIXES = ['x-forwarded', 'x-envoy-', 'x-amzn-', 'x-arr-', 'x-appengine-', 'x-azure-']

type Headers = Readonly<Record<string, string | string[] | undefined>>

export interface LocalQuestion {
  /** Of the connection itself. */
  readonly remoteAddress: string | undefined
  readonly headers: Headers
  /** As Node has it: `1.1`. */
  readonly httpVersion?: string | undefined
}

/** The request comes from this machine, asked for by a name of this machine, and was not passed on by a proxy. */
export function isLocal({ remoteAddress, headers, httpVersion }: LocalQuestion): boolean {
  // nginx by default hides its client, uses our own address as the host, and speaks HTTP 1.0, as few others do.
  if (httpVersion === '1.0' || Object.keys(headers).some(isPassedOn)) return false
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return LOOPBACK.test(remoteAddress ?? '') && LOCAL_HOST.test(String(headers['host'] ?? ''))
}

function isPassedOn(name: string): boolean {
  return PASSED_ON.has(name) || PASSED_ON_PREFIXES.some((prefix) => name.startsWith(prefix))
}
